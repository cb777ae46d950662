// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// A graph problem without semantics: names, costs, abstract layouts, sizes.
// CHECK-LABEL: @problem
// CHECK:         %{{.*}} = braid.opaque "load"() {cost = 1.000000e-03 : f64, bytes = array<i64: 4096>} : () -> tensor<1xi8>
// CHECK:         %{{.*}} = braid.opaque "work"(%{{.*}}) {cost = {matrix = 2.000000e-03 : f64, vector = 1 : i64}
// CHECK-SAME:      layouts = [{operands = ["l0"], results = ["l1"], cost = 1.000000e-03 : f64}, {operands = ["a"], results = ["l1"]}]
// CHECK-SAME:      backends = {cpu = 4.000000e-03 : f64, gpu = 1.000000e-03 : f64}
// CHECK-SAME:      (tensor<1xi8>) -> tensor<1xi8, #braid.layout<"l1">>
// CHECK:         braid.opaque "store"(%{{.*}}) {backends = ["cpu", "gpu"]} : (tensor<1xi8, #braid.layout<"l1">>) -> ()
// GENERIC:       "braid.opaque"() {kind = "load", cost = 1.000000e-03 : f64, bytes = array<i64: 4096>}
func.func @problem() {
  %0 = braid.opaque "load"() {cost = 1.0e-3 : f64, bytes = array<i64: 4096>} : () -> tensor<1xi8>
  %1 = braid.opaque "work"(%0) {cost = {matrix = 2.0e-3 : f64, vector = 1 : i64}, layouts = [{operands = ["l0"], results = ["l1"], cost = 1.0e-3 : f64}, {operands = ["a"], results = ["l1"]}], backends = {cpu = 4.0e-3 : f64, gpu = 1.0e-3 : f64}} : (tensor<1xi8>) -> tensor<1xi8, #braid.layout<"l1">>
  braid.opaque "store"(%1) {backends = ["cpu", "gpu"]} : (tensor<1xi8, #braid.layout<"l1">>) -> ()
  func.return
}
