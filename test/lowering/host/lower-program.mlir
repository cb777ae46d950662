// RUN: %braid-opt %s -p plan-memory,lower-program | FileCheck %s
// RUN: %braid-opt %s -p plan-memory,lower-program{profile=true} | FileCheck %s --check-prefix=PROFILE

// A kernel with a grid runs through parallel_for (offset 8 of the environment).
// CHECK:       llvm.func internal @many_iterations(%[[SLOTS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK:         llvm.call @many(%{{.*}}, %{{.*}}, %[[BEGIN]], %[[END]])

// With scratch, the range is one of workers: each takes a share of the grid, and memory of its own.
// CHECK:       llvm.func internal @worker_iterations(%[[SLOTS:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64)
// CHECK:         %[[OWN:.*]] = arith.muli %[[FIRST]],
// CHECK:         llvm.getelementptr inbounds %{{.*}}[%[[OWN]]]
// CHECK:         arith.muli %[[FIRST]],
// CHECK:         arith.divui
// CHECK:         arith.muli %[[LAST]],
// CHECK:         arith.divui
// CHECK:         llvm.call @worker(
// CHECK-LABEL: llvm.func @braid_run
// CHECK-SAME:    (%[[ENV:.*]]: !llvm.ptr, %[[IN:.*]]: !llvm.ptr, %[[OUT:.*]]: !llvm.ptr, %[[WEIGHTS:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr)
// Values that calls share are computed at the entry.
// CHECK:         %[[X:.*]] = llvm.load %[[IN]]
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr inbounds %[[ENV]][8]
// CHECK:         %[[FOR:.*]] = llvm.load %[[FIELD]]
// CHECK:         %[[Y:.*]] = llvm.load %[[OUT]]
// CHECK:         llvm.call @one(%[[X]], %[[WEIGHTS]], %[[ARENA]],
// CHECK:         llvm.call %[[FOR]](%[[ENV]],
// CHECK-NOT:     tensor<
// CHECK:         llvm.return

// PROFILE-LABEL: llvm.func @braid_run
// The runtime's clock, and the record of the end of the kernel.
// PROFILE:         llvm.getelementptr inbounds %{{.*}}[136]
// PROFILE:         llvm.call @one
// PROFILE:         llvm.getelementptr inbounds %{{.*}}[144]
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %w = braid.parameter {key = "w"} : tensor<16xf32>
  %a = func.call @one(%x, %w) {braid.name = "layer"} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @many(%a) : (tensor<16xf32>) -> tensor<16xf32>
  %c = func.call @worker(%b) : (tensor<16xf32>) -> tensor<16xf32>
  func.return %c : tensor<16xf32>
}
func.func private @one(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
func.func private @many(tensor<16xf32>) -> tensor<16xf32> attributes {braid.grid = 4 : i64}
func.func private @worker(tensor<16xf32>) -> tensor<16xf32> attributes {braid.grid = 8 : i64, braid.workers = 2 : i64, braid.scratch_bytes = 256 : i64}
