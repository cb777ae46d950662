// A producer outside of a region and its readers inside are sets too: 4 MiB are never stored. What
// a region hands on is needed behind it, and stays.
// RUN: %braid-opt %s -p 'select-rematerialization{tensor-threshold=0},apply-rematerialization' --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: recompute p for s: 4 MiB by tensor
// REMARK: sets: 1, ops to recompute: 1
// CHECK-LABEL: func.func @branch
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      braid.add %x, %y {braid.name = "p", braid.recomputed = 0 : i64, braid.fusion_group = 0 : i64}
// CHECK-NEXT:      braid.reduce {{.*}}braid.name = "s", braid.fusion_group = 0 : i64}
func.func @branch(%c: i1, %x: tensor<1024x1xf32>, %y: tensor<1x1024xf32>) -> tensor<1024x1xf32> {
  %p = braid.add %x, %y {braid.name = "p"} : (tensor<1024x1xf32>, tensor<1x1024xf32>) -> tensor<1024x1024xf32>
  %r = scf.if %c -> (tensor<1024x1xf32>) {
    %s = braid.reduce %p {kind = "add", dims = array<i64: 1>, braid.name = "s"} : (tensor<1024x1024xf32>) -> tensor<1024x1xf32>
    scf.yield %s : tensor<1024x1xf32>
  } else {
    scf.yield %x : tensor<1024x1xf32>
  }
  func.return %r : tensor<1024x1xf32>
}

// -----

// Two readers in two regions, one of them nested; each gets copies in its region.
// REMARK: recompute p for s: 100 B by tensor
// REMARK: recompute p for t: 100 B by tensor
// REMARK: sets: 2, ops to recompute: 2
// CHECK-LABEL: func.func @nested
// CHECK:         scf.for
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        braid.opaque "p"{{.*}}braid.recomputed = 0
// CHECK-NEXT:        braid.opaque "s"
// CHECK:           braid.opaque "p"{{.*}}braid.recomputed = 1
// CHECK-NEXT:      braid.opaque "t"
func.func @nested(%c: i1, %n: index, %x: tensor<10xi8>) -> tensor<10xi8> {
  %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10xi8>) -> tensor<100xi8>
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (tensor<10xi8>) {
    scf.if %c {
      braid.opaque "s"(%p) {braid.name = "s"} : (tensor<100xi8>) -> ()
      scf.yield
    }
    %t = braid.opaque "t"(%a, %p) {braid.name = "t"} : (tensor<10xi8>, tensor<100xi8>) -> tensor<10xi8>
    scf.yield %t : tensor<10xi8>
  }
  func.return %r : tensor<10xi8>
}

// -----

// REMARK: sets: 0, ops to recompute: 0
// CHECK-LABEL: func.func @handed_on
// CHECK-NEXT:    braid.opaque "p"
func.func @handed_on(%c: i1, %x: tensor<10xi8>) -> tensor<10xi8> {
  %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10xi8>) -> tensor<10xi8>
  %r = scf.if %c -> (tensor<10xi8>) {
    scf.yield %p : tensor<10xi8>
  } else {
    scf.yield %x : tensor<10xi8>
  }
  func.return %r : tensor<10xi8>
}
