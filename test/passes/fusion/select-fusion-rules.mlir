// RUN: %braid-opt %s -p 'select-fusion{rules=%S/Inputs/no-fusion.toml}' | filecheck %s
// RUN: not %braid-opt %s -p 'select-fusion{rules=%S/Inputs/nothing.toml}' 2>&1 | filecheck %s --check-prefix=MISSING

// MISSING: nothing.toml: error: cannot read fusion rules

// CHECK:      braid.neg {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT: braid.exp {{.*}}braid.fusion_group = 0 : i64
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = braid.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = braid.exp %0 : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
