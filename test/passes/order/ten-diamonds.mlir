// Subgraphs of fewer ops are merged with one neighbour, not all into one.
// RUN: %braid-opt %s -p 'search-order{min-nodes=4}' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'search-order{min-nodes=6}' --remarks 2>&1 | filecheck %s --check-prefix=SIX
// CHECK-COUNT-10: subgraph {{[0-9]}}: 4 ops, 2 orders
// CHECK-NOT: subgraph
// The last of five is less than that, and joins the one before it.
// SIX-COUNT-5: subgraph {{[0-9]}}: 8 ops, 4 orders
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v0 = braid.opaque "fork"(%x) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v1 = braid.opaque "l"(%v0) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v2 = braid.opaque "r"(%v0) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v3 = braid.opaque "join"(%v1, %v2) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v4 = braid.opaque "fork"(%v3) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v5 = braid.opaque "l"(%v4) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v6 = braid.opaque "r"(%v4) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v7 = braid.opaque "join"(%v5, %v6) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v8 = braid.opaque "fork"(%v7) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v9 = braid.opaque "l"(%v8) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v10 = braid.opaque "r"(%v8) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v11 = braid.opaque "join"(%v9, %v10) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v12 = braid.opaque "fork"(%v11) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v13 = braid.opaque "l"(%v12) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v14 = braid.opaque "r"(%v12) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v15 = braid.opaque "join"(%v13, %v14) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v16 = braid.opaque "fork"(%v15) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v17 = braid.opaque "l"(%v16) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v18 = braid.opaque "r"(%v16) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v19 = braid.opaque "join"(%v17, %v18) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v20 = braid.opaque "fork"(%v19) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v21 = braid.opaque "l"(%v20) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v22 = braid.opaque "r"(%v20) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v23 = braid.opaque "join"(%v21, %v22) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v24 = braid.opaque "fork"(%v23) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v25 = braid.opaque "l"(%v24) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v26 = braid.opaque "r"(%v24) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v27 = braid.opaque "join"(%v25, %v26) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v28 = braid.opaque "fork"(%v27) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v29 = braid.opaque "l"(%v28) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v30 = braid.opaque "r"(%v28) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v31 = braid.opaque "join"(%v29, %v30) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v32 = braid.opaque "fork"(%v31) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v33 = braid.opaque "l"(%v32) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v34 = braid.opaque "r"(%v32) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v35 = braid.opaque "join"(%v33, %v34) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v36 = braid.opaque "fork"(%v35) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v37 = braid.opaque "l"(%v36) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v38 = braid.opaque "r"(%v36) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %v39 = braid.opaque "join"(%v37, %v38) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %v39 : tensor<4xf32>
}
