// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{a cost is -1.000000e+00 : f64, expected no negative number}}
  braid.opaque "a"(%x) {cost = -1.0 : f64} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @resource(%x: tensor<4xf32>) {
  // expected-error @+1 {{a cost is "fast", expected a number}}
  braid.opaque "a"(%x) {cost = {cpu = "fast"}} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @lacking(%x: tensor<4xf32>) {
  // expected-error @+1 {{a choice of layouts lacks the array 'operands'}}
  braid.opaque "a"(%x) {layouts = [{results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @too_many(%x: tensor<4xf32>) {
  // expected-error @+1 {{2 layouts of operands, expected 1}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0", "l1"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @layout(%x: tensor<4xf32>) {
  // expected-error @+1 {{'A' must have an inner block for each capital and no other}}
  braid.opaque "a"(%x) {layouts = [{operands = ["A"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @field(%x: tensor<4xf32>) {
  // expected-error @+1 {{a choice of layouts has fields ['costs'], which mean nothing}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0"], results = [], costs = 1.0 : f64}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @sizes(%x: tensor<4xf32>) {
  // expected-error @+1 {{bytes has 1 entries, expected 0}}
  braid.opaque "a"(%x) {bytes = array<i64: 4>} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @no_layouts(%x: tensor<4xf32>) {
  // expected-error @+1 {{layouts is empty: no choice is left}}
  braid.opaque "a"(%x) {layouts = []} : (tensor<4xf32>) -> ()
  func.return
}
