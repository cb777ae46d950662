// RUN: %braid-opt %s -p 'lower-to-instructions{target=npu-small output=%t.txt}' -o %t.mlir
// RUN: filecheck %s --input-file %t.txt
// RUN: %braid simulate %t.txt | filecheck %s --check-prefix=TABLE
// RUN: sed -e 's/sync 0 [0-9]* ; exp#3/sync 0 0 ; exp#3/' %t.txt > %t.early.txt
// RUN: not %braid simulate %t.early.txt 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not %braid simulate %t.txt --target %S/tiny.toml 2>&1 | filecheck %s --check-prefix=TINY

// Each result lies over its operand, but four of 600 kB do not fit 2 MiB. The one that is read last is stored to
// make room, and loaded when it is needed; what is loaded waits for the room.
// CHECK:      load 0 600000 {{.*}}; exp#0
// CHECK:      vector 2 {{[0-9]+}} {{.*}}; exp#0
// CHECK:      load 0 600000 {{.*}}; exp#1
// CHECK:      load 0 600000 {{.*}}; exp#2
// CHECK:      store 3 600000 {{.*}}; exp#3
// CHECK:      load 0 600000 {{.*}}; exp#3
// CHECK:      load 0 600000 {{.*}}; add#6
// CHECK:      vector 2 150000 {{.*}}; add#6

// TABLE: scratchpad 1800000 of 2097152 bytes
// EARLY: error: the buffers of the stream take {{[0-9]+}} bytes at one time, but 'scratchpad' of backend 'npu' has 2097152
// TINY: error: the buffers of the stream take {{[0-9]+}} bytes at one time, but 'scratchpad' of backend 'npu' has 1000000
func.func @main(%w: tensor<150000xf32>, %x: tensor<150000xf32>, %y: tensor<150000xf32>, %z: tensor<150000xf32>) -> tensor<150000xf32> {
  %0 = braid.exp %w : (tensor<150000xf32>) -> tensor<150000xf32>
  %1 = braid.exp %x : (tensor<150000xf32>) -> tensor<150000xf32>
  %2 = braid.exp %y : (tensor<150000xf32>) -> tensor<150000xf32>
  %3 = braid.exp %z : (tensor<150000xf32>) -> tensor<150000xf32>
  %4 = braid.add %1, %2 : (tensor<150000xf32>, tensor<150000xf32>) -> tensor<150000xf32>
  %5 = braid.add %4, %3 : (tensor<150000xf32>, tensor<150000xf32>) -> tensor<150000xf32>
  %6 = braid.add %5, %0 : (tensor<150000xf32>, tensor<150000xf32>) -> tensor<150000xf32>
  func.return %6 : tensor<150000xf32>
}
