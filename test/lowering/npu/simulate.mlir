// RUN: %braid-opt %s -p 'lower-to-instructions{target=npu-small output=%t.txt}' -o %t.mlir
// RUN: filecheck %s --input-file %t.txt
// RUN: %braid-opt %s -p 'lower-to-instructions{target=npu-small output=%t.bin}' -o %t.mlir
// RUN: %braid simulate %t.txt > %t.first
// RUN: %braid simulate %t.bin --html %t.html > %t.second
// RUN: %braid simulate %s > %t.third
// RUN: diff %t.first %t.second
// RUN: diff %t.first %t.third
// RUN: filecheck %s --check-prefix=TABLE --input-file %t.first
// RUN: filecheck %s --check-prefix=HTML --input-file %t.html
// RUN: not %braid simulate %t.mlir.missing 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %braid simulate %t.bin --target host 2>&1 | filecheck %s --check-prefix=HOST

// The matrix unit waits for both loads. What it makes stays on the chip: the slice has no
// instruction and the vector unit reads it where it is; only the result is stored.
// CHECK:      load 0 32 %0 -> 0+32 ; product
// CHECK-NEXT: load 0 64 %1 -> 64+64 ; product
// CHECK-NEXT: sync 1 1 ; product
// CHECK-NEXT: matrix 1 64 k0 0+32 64+64 -> 128+32 ; product
// CHECK-NEXT: sync 2 3 ; exp#1
// CHECK-NEXT: vector 2 48 k1 128+32 -> 0+16 ; exp#1
// CHECK-NEXT: sync 3 5 ; exp#1
// CHECK-NEXT: store 3 16 0+16 -> %2 ; exp#1
// CHECK-NEXT: buffer 32@0 0 0 3
// CHECK-NEXT: buffer 64@64 1 1 3
// CHECK-NEXT: buffer 32@128 3 3 5
// CHECK-NEXT: buffer 16@0 5 7
// CHECK-NEXT: tensor 32 argument 0
// CHECK-NEXT: tensor 64 parameter w
// CHECK-NEXT: tensor 16 value 3

// TABLE:      unit
// TABLE-NEXT: load
// TABLE-NEXT: matrix
// TABLE-NEXT: vector
// TABLE-NEXT: store
// TABLE-NEXT: total
// TABLE-NEXT: scratchpad {{[0-9]+}} of 2097152 bytes
// HTML: "timelines":[{"title":"Timeline"
// HTML-SAME: "label":"product"
// MISSING: error: cannot read the stream
// HOST: error: the stream was made for target 'npu-small', not for 'host'
func.func @main(%x: tensor<2x4xf32>) -> tensor<1x4xf32> {
  %w = braid.parameter {key = "w"} : tensor<4x4xf32>
  %0 = braid.matmul %x, %w {braid.name = "product"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = braid.slice %0 {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %2 = braid.exp %1 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %2 : tensor<1x4xf32>
}
