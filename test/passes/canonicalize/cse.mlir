// RUN: %braid-opt %s -p cse --allow-unregistered-dialect | filecheck %s

// Names do not keep ops apart, and none is lost; other attributes do.
// CHECK-LABEL: @names
// CHECK-NEXT:    %[[X:.*]] = arith.addi %a, %b {braid.name = ["x", "y", "z"]} : i32
// CHECK-NEXT:    %[[W:.*]] = arith.addi %a, %b {braid.name = "w", other} : i32
// CHECK-NEXT:    "test.use"(%[[X]], %[[X]], %[[X]], %[[W]])
func.func @names(%a: i32, %b: i32) {
  %0 = arith.addi %a, %b {braid.name = "x"} : i32
  %1 = arith.addi %a, %b {braid.name = ["y", "x"]} : i32
  %2 = arith.addi %a, %b {braid.name = "z"} : i32
  %3 = arith.addi %a, %b {braid.name = "w", other} : i32
  "test.use"(%0, %1, %2, %3) : (i32, i32, i32, i32) -> ()
  func.return
}

// CHECK-LABEL: @commutative
// CHECK-NEXT:    arith.addi %a, %b
// CHECK-NEXT:    arith.subi %a, %b
// CHECK-NEXT:    arith.subi %b, %a
// CHECK-NEXT:    "test.use"
func.func @commutative(%a: i32, %b: i32) {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %b, %a : i32
  %2 = arith.subi %a, %b : i32
  %3 = arith.subi %b, %a : i32
  "test.use"(%0, %1, %2, %3) : (i32, i32, i32, i32) -> ()
  func.return
}

// Two reads are one unless something may have written in between.
// CHECK-LABEL: @reads
// CHECK-NEXT:    %[[R0:.*]] = memref.load
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    %[[R1:.*]] = memref.load
// CHECK-NEXT:    "test.unknown"
// CHECK-NEXT:    %[[R2:.*]] = memref.load
// CHECK-NEXT:    "test.use"(%[[R0]], %[[R0]], %[[R1]], %[[R1]], %[[R2]])
func.func @reads(%m: memref<8xi32>, %i: index, %x: i32) {
  %0 = memref.load %m[%i] : memref<8xi32>
  %1 = memref.load %m[%i] : memref<8xi32>
  memref.store %x, %m[%i] : memref<8xi32>
  %2 = memref.load %m[%i] : memref<8xi32>
  %3 = memref.load %m[%i] : memref<8xi32>
  "test.unknown"() : () -> ()
  %4 = memref.load %m[%i] : memref<8xi32>
  "test.use"(%0, %1, %2, %3, %4) : (i32, i32, i32, i32, i32) -> ()
  func.return
}

// A write inside a region counts as well.
// CHECK-LABEL: @write_in_region
// CHECK:         memref.load
// CHECK:         scf.if
// CHECK:         memref.load
func.func @write_in_region(%m: memref<8xi32>, %i: index, %x: i32, %c: i1) {
  %0 = memref.load %m[%i] : memref<8xi32>
  scf.if %c {
    memref.store %x, %m[%i] : memref<8xi32>
  }
  %1 = memref.load %m[%i] : memref<8xi32>
  "test.use"(%0, %1) : (i32, i32) -> ()
  func.return
}

// Outside values are available inside a region, not the other way round.
// CHECK-LABEL: @regions
// CHECK-NEXT:    %[[O:.*]] = arith.addi %a, %a
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[I:.*]] = arith.muli %[[O]], %[[O]]
// CHECK-NEXT:      "test.use"(%[[O]], %[[I]])
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[M:.*]] = arith.muli %[[O]], %[[O]]
// CHECK-NEXT:    "test.use"(%[[M]], %[[M]])
func.func @regions(%a: i32, %c: i1) {
  %0 = arith.addi %a, %a : i32
  scf.if %c {
    %1 = arith.addi %a, %a : i32
    %2 = arith.muli %1, %1 : i32
    "test.use"(%1, %2) : (i32, i32) -> ()
    scf.yield
  }
  %3 = arith.muli %0, %0 : i32
  %4 = arith.muli %0, %0 : i32
  "test.use"(%3, %4) : (i32, i32) -> ()
  func.return
}

// Equal regions make equal ops, whatever the names in them.
// CHECK-LABEL: @equal_regions
// CHECK-COUNT-2: scf.if
// CHECK-NOT:     scf.if
func.func @equal_regions(%a: i32, %b: i32, %c: i1) {
  %0 = scf.if %c -> (i32) {
    %x = arith.addi %a, %b {braid.name = "p"} : i32
    scf.yield %x : i32
  } else {
    scf.yield %a : i32
  }
  %1 = scf.if %c -> (i32) {
    %x = arith.addi %a, %b {braid.name = "q"} : i32
    scf.yield %x : i32
  } else {
    scf.yield %a : i32
  }
  %2 = scf.if %c -> (i32) {
    %x = arith.addi %a, %b : i32
    scf.yield %x : i32
  } else {
    scf.yield %b : i32
  }
  "test.use"(%0, %1, %2) : (i32, i32, i32) -> ()
  func.return
}

// Across blocks, an expression is available where its block dominates.
// CHECK-LABEL: @blocks
// CHECK:         %[[E:.*]] = arith.addi %a, %a
// CHECK:       ^{{.*}}:
// CHECK-NEXT:    %[[L:.*]] = arith.muli %a, %a
// CHECK-NEXT:    "test.use"(%[[E]], %[[L]])
// CHECK:       ^{{.*}}:
// CHECK-NEXT:    %[[R:.*]] = arith.muli %a, %a
// CHECK-NEXT:    "test.use"(%[[E]], %[[R]])
func.func @blocks(%a: i32, %c: i1) {
  %e = arith.addi %a, %a : i32
  cf.cond_br %c, ^left, ^right
^left:
  %0 = arith.addi %a, %a : i32
  %1 = arith.muli %a, %a : i32
  "test.use"(%0, %1) : (i32, i32) -> ()
  cf.br ^exit
^right:
  %2 = arith.addi %a, %a : i32
  %3 = arith.muli %a, %a : i32
  "test.use"(%2, %3) : (i32, i32) -> ()
  cf.br ^exit
^exit:
  "test.use"(%e) : (i32) -> ()
  func.return
}
