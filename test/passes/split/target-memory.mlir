// RUN: %braid-opt %s -p 'select-splits{target=npu-davinci}' | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{target=npu-small}' | filecheck %s --check-prefix=SMALL
// SMALL-NOT: braid.split

// Operands of the cube are in L1 (1 MiB), those of the vector unit in UB (256 KiB).
// CHECK-LABEL: func.func @main
// CHECK:         braid.matmul %a, %b : (tensor<128x256xf32>
// CHECK:         braid.exp {{.*}}braid.split = array<i64: 2, 1>
func.func @main(%a: tensor<128x256xf32>, %b: tensor<256x256xf32>) -> tensor<128x256xf32> {
  %0 = braid.matmul %a, %b : (tensor<128x256xf32>, tensor<256x256xf32>) -> tensor<128x256xf32>
  %1 = braid.exp %0 : (tensor<128x256xf32>) -> tensor<128x256xf32>
  func.return %1 : tensor<128x256xf32>
}
