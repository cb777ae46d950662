// RUN: %braid-opt %s -p canonicalize,cse | filecheck %s
// RUN: %braid-opt %s --pass-pipeline='builtin.module(func.func(canonicalize),cse)' | filecheck %s
// RUN: %braid-opt %s -p ' builtin.module( any( canonicalize , cse ) ) ' | filecheck %s
// RUN: %braid-opt %s --canonicalize --cse | filecheck %s
// RUN: %braid-opt %s -p simplify | filecheck %s
// RUN: %braid-opt --passes=simplify - < %s | filecheck %s
// RUN: %braid-opt < %s | filecheck %s --check-prefix=NONE
// RUN: %braid-opt %s -p 'builtin.module()' | filecheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[M:.*]] = arith.muli %a, %a : i32
// CHECK-NEXT:    arith.addi %[[M]], %[[M]] : i32
// NONE:          arith.constant 0
// NONE:          arith.muli
// NONE:          arith.muli
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  %2 = arith.muli %1, %1 : i32
  %3 = arith.muli %1, %1 : i32
  %4 = arith.addi %2, %3 : i32
  func.return %4 : i32
}
