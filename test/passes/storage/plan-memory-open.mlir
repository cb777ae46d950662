// RUN: %braid-opt %s -p plan-memory | FileCheck %s
// RUN: %braid-opt %s -p 'plan-memory,lower-program' | FileCheck %s --check-prefix=PROGRAM

// Buffers of open sizes are placed when these are known; what is returned is in the caller's.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    braid.open_buffers = #braid.sizes<["64 * n", "256"]>
// CHECK-SAME:    braid.open_lifetimes = array<i64: 0, 1, 1, 2>
// CHECK:         func.call @open(%{{.*}}) {braid.buffers = [#braid.buffer<"open:0", 0>]}
// CHECK:         func.call @fixed(%{{.*}}) {braid.buffers = [#braid.buffer<"open:1", 0>]}
// CHECK:         func.call @last(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}

// The program reads sizes at their numbers, and offsets after the last of them.
// PROGRAM-LABEL: llvm.func @braid_run
// PROGRAM:         llvm.getelementptr inbounds %{{.*}}[120]
// PROGRAM:         llvm.call @open(%{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> ()
func.func @main(%x: tensor<?x16xf32, #braid.sizes<["n"]>>) -> tensor<16xf32> {
  %a = func.call @open(%x) : (tensor<?x16xf32, #braid.sizes<["n"]>>) -> tensor<?x16xf32, #braid.sizes<["n"]>>
  %b = func.call @fixed(%a) : (tensor<?x16xf32, #braid.sizes<["n"]>>) -> tensor<64xf32>
  %c = func.call @last(%b) : (tensor<64xf32>) -> tensor<16xf32>
  func.return %c : tensor<16xf32>
}
func.func private @open(tensor<?x16xf32, #braid.sizes<["n"]>>) -> tensor<?x16xf32, #braid.sizes<["n"]>> attributes {braid.kernel_sizes = #braid.sizes<["n"]>}
func.func private @fixed(tensor<?x16xf32, #braid.sizes<["n"]>>) -> tensor<64xf32>
func.func private @last(tensor<64xf32>) -> tensor<16xf32>
