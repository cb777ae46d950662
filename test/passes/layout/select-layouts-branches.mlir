// The published example of a branch: what is best depends on how often each side is taken.
// RUN: %braid-opt %s -p 'select-layouts{algorithm=fixed:l1}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=L1
// RUN: %braid-opt %s -p 'select-layouts{algorithm=fixed:l2}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=L2
// RUN: %braid-opt %s -p select-layouts --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=BEST
// RUN: %braid-opt %s -p select-layouts --split-input-file | filecheck %s

// Without a profile.
// L1: cost 0.105 seconds
// L2: cost 0.055 seconds
// BEST: cost 0.055 seconds, lower bound 0.055, gap 0.00%, 1 reorders
// CHECK: braid.opaque "C"(%{{.*}}) {{.*}}braid.layouts = {operands = [#braid.layout<"l2">], results = [#braid.layout<"l2">]}
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64}]} {
  func.func @main(%c: i1) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    func.return
  }
}

// -----

// With the probabilities.
// L1: cost 0.023 seconds
// L2: cost 0.026 seconds
// BEST: cost 0.023 seconds, lower bound 0.023, gap 0.00%, 1 reorders
// CHECK: braid.opaque "C"(%{{.*}}) {{.*}}braid.layouts = {operands = [#braid.layout<"l1">], results = [#braid.layout<"l1">]}
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64}]} {
  func.func @main(%c: i1) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {braid.branch_probability = 0.9 : f64}
    func.return
  }
}

// -----

// With reorders between the two, the optima are mixed: without a profile …
// BEST: cost 0.049 seconds, lower bound 0.049, gap 0.00%, 3 reorders
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64},
    {source = "l1", target = "l2", cost = 2.0e-3 : f64}, {source = "l2", target = "l1", cost = 2.0e-3 : f64}]} {
  func.func @main(%c: i1) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    func.return
  }
}

// -----

// … and with the probabilities, where the reorders stand on the rare side.
// BEST: cost 0.0174 seconds, lower bound 0.0174, gap 0.00%, 3 reorders
// CHECK: @rare
// CHECK-SAME: {value = 2 : i64, source = #braid.layout<"l1">, target = #braid.layout<"l2">, block = 2 : i64}
// CHECK-SAME: {value = 5 : i64, source = #braid.layout<"l2">, target = #braid.layout<"l1">, block = 2 : i64}
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64},
    {source = "l1", target = "l2", cost = 2.0e-3 : f64}, {source = "l2", target = "l1", cost = 2.0e-3 : f64}]} {
  func.func @rare(%c: i1) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {braid.branch_probability = 0.9 : f64}
    func.return
  }
}
