// Above a threshold of 0 nothing is stored, not even for a copy: c computes m and n with what they need.
// RUN: %braid-opt %s -p 'select-rematerialization{tensor-threshold=0},apply-rematerialization' --remarks --verify-decisions 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK < %t
// With 10 B the same, since n, 20 B, is above; with 20 B n stays, and so what it reads: only p is made again.
// RUN: %braid-opt %s -p 'select-rematerialization{tensor-threshold=10}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: %braid-opt %s -p 'select-rematerialization{tensor-threshold=20}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=LARGE

// REMARK: recompute p; m; n for c: 20 B by tensor
// REMARK: recompute p for c: 100 B by tensor
// REMARK: sets: 2, ops to recompute: 4
// LARGE: recompute p; m for n: 50 B by tensor
// LARGE: recompute p for c: 100 B by tensor
// LARGE: sets: 2, ops to recompute: 3
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    braid.opaque "p"{{.*}} braid.recomputed = 0
// CHECK-NEXT:    braid.opaque "m"{{.*}} braid.recomputed = 0
// CHECK-NEXT:    braid.opaque "n"{{.*}} braid.recomputed = 0
// CHECK-NEXT:    braid.opaque "p"{{.*}} braid.recomputed = 1
// CHECK-NEXT:    braid.opaque "c"
// CHECK-NEXT:    func.return
func.func @main(%x: tensor<10xi8>) -> tensor<10xi8> {
  %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10xi8>) -> tensor<100xi8>
  %m = braid.opaque "m"(%p) {braid.name = "m"} : (tensor<100xi8>) -> tensor<50xi8>
  %n = braid.opaque "n"(%m) {braid.name = "n"} : (tensor<50xi8>) -> tensor<20xi8>
  %c = braid.opaque "c"(%n, %p) {braid.name = "c"} : (tensor<20xi8>, tensor<100xi8>) -> tensor<10xi8>
  func.return %c : tensor<10xi8>
}
