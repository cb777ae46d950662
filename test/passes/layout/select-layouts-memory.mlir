// A limit of memory takes what is fastest away where a copy in a second layout does not fit.
// RUN: %braid-opt %s -p select-layouts --remarks -o %t 2>&1 | filecheck %s --check-prefix=FREE
// RUN: %braid-opt %s -p 'select-layouts{memory-limit=2KiB}' --remarks -o %t 2>&1 | filecheck %s --check-prefix=ENOUGH
// RUN: %braid-opt %s -p 'select-layouts{memory-limit=1040}' --remarks -o %t 2>&1 | filecheck %s --check-prefix=TIGHT
// RUN: not %braid-opt %s -p 'select-layouts{memory-limit=500}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'select-layouts{memory-limit=much}' 2>&1 | filecheck %s --check-prefix=WORD

// FREE: cost 0.005 seconds, lower bound 0.005, gap 0.00%, 1 reorders
// ENOUGH: cost 0.005 seconds, lower bound 0.005, gap 0.00%, 1 reorders, peak 1056 of 2048 bytes
// TIGHT: cost 0.008 seconds, lower bound 0.008, gap 0.00%, 0 reorders, peak 548 of 1040 bytes
// NONE: select-layouts-memory.mlir:{{.*}}: error: no choice of layouts fits into 500 of memory
// NONE: hint: give a larger memory-limit
// WORD: error: 'memory-limit': 'much' is not a size
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 1.0e-3 : f64}]} {
  func.func @main() {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 1.0e-3 : f64} : () -> tensor<128xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l0"], results = ["l0"]}], cost = 1.0e-3 : f64} : (tensor<128xf32>) -> tensor<8xf32>
    %c = braid.opaque "C"(%a) {layouts = [{operands = ["l0"], results = ["l0"], cost = 5.0e-3 : f64}, {operands = ["l1"], results = ["l0"], cost = 1.0e-3 : f64}]} : (tensor<128xf32>) -> tensor<1xf32>
    %d = braid.opaque "D"(%b, %c) {layouts = [{operands = ["l0", "l0"], results = ["l0"]}], cost = 1.0e-3 : f64} : (tensor<8xf32>, tensor<1xf32>) -> tensor<1xf32>
    func.return
  }
}
