// RUN: %braid-opt %s -p canonicalize --print-debuginfo --allow-unregistered-dialect | filecheck %s

// An op that replaces another one takes its names and, if it is new, its location.
// CHECK-LABEL: @names
// CHECK-NEXT:    %{{.*}} = arith.muli %a, %a {braid.name = ["mul", "add"]}
// CHECK-NEXT:    func.return
func.func @names(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.muli %a, %a {braid.name = "mul"} : i32
  %2 = arith.addi %1, %0 {braid.name = "add"} : i32
  func.return %2 : i32
}

// CHECK-LABEL: @folded
// CHECK-NEXT:    arith.constant {braid.name = "sum"} 5 : i32 loc("there":1:2)
func.func @folded() -> i32 {
  %0 = arith.constant 2 : i32 loc("here":1:1)
  %1 = arith.constant 3 : i32 loc("here":1:2)
  %2 = arith.addi %0, %1 {braid.name = "sum"} : i32 loc("there":1:2)
  func.return %2 : i32
}

// Ops that may have an effect stay, others are removed.
// CHECK-LABEL: @dead
// CHECK-NEXT:    "test.effect"(%a)
// CHECK-NEXT:    func.return
func.func @dead(%a: i32) {
  %0 = arith.addi %a, %a : i32
  %1 = arith.muli %0, %0 : i32
  "test.effect"(%a) : (i32) -> ()
  func.return
}
