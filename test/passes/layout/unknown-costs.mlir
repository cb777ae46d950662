// Unknown costs of a resource count as 0: the remark has their number, and claims no gap.
// RUN: %braid-opt %s -p 'select-layouts{cost=energy}' --remarks --verify-decisions 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'select-layouts{cost=bytes}' --remarks --verify-decisions 2>&1 | filecheck %s --check-prefix=KNOWN

// CHECK: cost 3 energy, lower bound 3, gap unknown, 0 reorders, energy of 2 ops and 0 reorders not known and counted as 0; costs: 1 declared, 2 unknown
// KNOWN: gap 0.00%, 0 reorders; costs:
// KNOWN-NOT: unknown
func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = braid.opaque "A"(%x) {cost = {energy = 3.0, bytes = 2.0}} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = braid.exp %0 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = braid.matmul %1, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %2 : tensor<16x16xf32>
}
