// Counts are found by the names of ops where no keys stand.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/input-ops.csv},select-layouts' --remarks 2>&1 | filecheck %s
// RUN: printf 'Operation Name,#Occurrences,Total time (us)\nasked,10,1\nmade,10,1\nturned,40,1\nchecked,50,1\nleft,9,1\n' > %t.csv
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv}' 2>&1 | filecheck %s --check-prefix=OTHERS

// C ran 90 times and D 10 times: all in l1, 2 + 2 + 1 + 0.9 · 10 + 0.1 · 90 ms.
// CHECK: cost 0.023 seconds, lower bound 0.023, gap 0.00%
// CHECK: braid.branch_probability = 9.000000e-01 : f64
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64}]} {
  func.func @main(%c: i1) {
    %a = braid.opaque "A"() {braid.name = "A", layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {braid.name = "B", layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {braid.name = "C", layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {braid.name = "D", layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    func.return
  }

  // OTHERS-LABEL: @loops
  // OTHERS: braid.branch_probability = 9.000000e-01 : f64
  // OTHERS: braid.trip_count = 4.000000e+00 : f64
  // OTHERS: braid.trip_count = 4.000000e+00 : f64
  // OTHERS-LABEL: @same_name
  // OTHERS-NOT: braid.branch_probability
  func.func @loops(%t: tensor<1xf32>, %n: index) {
    %0 = braid.opaque "asked"(%t) {braid.name = "asked"} : (tensor<1xf32>) -> tensor<i1>
    %c = tensor.extract %0[] : tensor<i1>
    scf.if %c {
      %1 = braid.opaque "left"(%t) {braid.name = "left"} : (tensor<1xf32>) -> tensor<1xf32>
    }
    scf.for %i = %n to %n step %n {
      %2 = braid.opaque "turned"(%t) {braid.name = "turned"} : (tensor<1xf32>) -> tensor<1xf32>
    }
    scf.while () : () -> () {
      %3 = braid.opaque "checked"(%t) {braid.name = "checked"} : (tensor<1xf32>) -> tensor<1xf32>
      scf.condition(%c)
    } do {
      scf.yield
    }
    func.return
  }
  // A name that occurs in both branches tells nothing about one of them.
  func.func @same_name(%c: i1, %x: tensor<4xf32>) {
    scf.if %c {
      %0 = braid.opaque "made"(%x) {braid.name = "made"} : (tensor<4xf32>) -> tensor<4xf32>
    } else {
      %1 = braid.opaque "made"(%x) {braid.name = "made"} : (tensor<4xf32>) -> tensor<4xf32>
    }
    func.return
  }
}
