// RUN: %braid compile %s --cpu=x86-64-v4,+avx512vnni --emit=linalg | FileCheck %s

// Both operands are computed, and unsigned: words of four bytes of B are made once, in scratch
// memory, with the products of each column by -128, since the first bits of A are turned, as its
// numbers have to be signed then. Sums begin with those.

func.func @main(%a: tensor<64x64xui8> {braid.name = "a"}, %b: tensor<64x128xui8> {braid.name = "b"})
    -> (tensor<64x128xi32> {braid.name = "y"}) {
  %0 = braid.matmul %a, %b {accumulator = i32} : (tensor<64x64xui8>, tensor<64x128xui8>) -> tensor<64x128xi32>
  return %0 : tensor<64x128xi32>
}

// CHECK: func.func @kernel_0(
// CHECK-SAME: memref<{{[0-9]+}}xf32>
// CHECK: scf.if
// CHECK: vector.load %{{.*}}, vector<16xi8>
// CHECK: vector.shuffle
// CHECK: vector.shuffle %{{.*}} : vector<16xi16>, vector<16xi16>
// CHECK: vector.store %{{.*}} : memref<{{[0-9]+}}xf32>, vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: arith.subi
// CHECK: arith.xori %{{.*}} : vector<64xi8>
// CHECK: scf.for %{{.*}} iter_args({{.*}}) -> (vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: vector.store %{{.*}} : memref<8192xi32>, vector<16xi32>
