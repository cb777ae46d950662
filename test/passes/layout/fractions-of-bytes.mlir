// Declared amounts of other resources than time are numbers, which need not be integers.
// RUN: %braid-opt %s -p 'select-layouts{cost=bytes}' --remarks 2>&1 | filecheck %s

// CHECK: cost 0.1 bytes, lower bound 0.1, gap 0.00%
// CHECK: braid.layouts = {operands = [], results = [#braid.layout<"ba">]}
func.func @main() {
  %a = braid.opaque "A"() {layouts = [
    {operands = [], results = ["rowmajor"], cost = {seconds = 0.0 : f64, bytes = 0.9 : f64}},
    {operands = [], results = ["colmajor"], cost = {seconds = 0.0 : f64, bytes = 0.1 : f64}}]} : () -> tensor<4x4xf32>
  func.return
}
