// RUN: %braid-opt %s -p plan-memory,lower-program | FileCheck %s
// RUN: not %braid-opt %s -p plan-memory,lower-program{profile=true} 2>&1 | FileCheck %s --check-prefix=PROFILE

// Calls on streams are a function of a range of streams; a call waits for the other stream's only where it
// reads what that makes, and posts only what others wait for.
// CHECK:       llvm.func internal @braid_run_inter_op_1(%[[SLOTS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK:         %[[POSTS:.*]] = llvm.getelementptr inbounds %{{.*}}[64]
// CHECK:         %[[POST:.*]] = llvm.load %[[POSTS]]
// CHECK:         %[[WAITS:.*]] = llvm.getelementptr inbounds %{{.*}}[72]
// CHECK:         %[[WAIT:.*]] = llvm.load %[[WAITS]]
// CHECK:         scf.if
// CHECK-NOT:       llvm.call %[[POST]]
// CHECK-NOT:       llvm.call %[[WAIT]]
// CHECK:           llvm.call @first
// CHECK:         scf.if
// CHECK-NOT:       llvm.call %[[WAIT]]
// CHECK:           llvm.call @second
// CHECK-NEXT:      llvm.getelementptr inbounds %{{.*}}[64]
// CHECK:           llvm.call %[[POST]]
// CHECK:         scf.if
// CHECK:           llvm.call %[[WAIT]]
// CHECK-NOT:       llvm.call %[[POST]]
// CHECK:           llvm.call @both
// CHECK:         llvm.return

// Ops without a stream run on all threads, after the section, which run_inter_op (offset 80) runs.
// CHECK-LABEL: llvm.func @braid_run
// CHECK-SAME:    (%[[ENV:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK:         llvm.alloca %{{.*}} x i64 {alignment = 64 : i64
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr inbounds %[[ENV]][8]
// CHECK:         %[[FOR:.*]] = llvm.load %[[FIELD]]
// CHECK:         llvm.getelementptr inbounds %[[ENV]][80]
// CHECK:         llvm.mlir.addressof @braid_run_inter_op_1
// CHECK:         llvm.call %{{.*}}(
// CHECK:         llvm.mlir.addressof @wide_iterations
// CHECK:         llvm.call %[[FOR]](%[[ENV]],
// CHECK:         llvm.return

// PROFILE: error: kernels that run side by side cannot be profiled
// PROFILE: hint: profile with one stream
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %a = func.call @first(%x) {braid.name = "a", braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @second(%x) {braid.name = "b", braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %c = func.call @both(%a, %b) {braid.name = "c", braid.inter_op_stream = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %d = func.call @wide(%c) {braid.name = "d"} : (tensor<16xf32>) -> tensor<16xf32>
  func.return %d : tensor<16xf32>
}
func.func private @first(tensor<16xf32>) -> tensor<16xf32>
func.func private @second(tensor<16xf32>) -> tensor<16xf32> attributes {braid.grid = 8 : i64}
func.func private @both(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
func.func private @wide(tensor<16xf32>) -> tensor<16xf32> attributes {braid.grid = 4 : i64}
