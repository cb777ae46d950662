// RUN: %braid-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK-LABEL: @ok
func.func @ok(%c: i1, %a: i32) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %l = arith.addi %a, %a : i32
  cf.br ^join(%l : i32)
^right:
  %r = arith.muli %a, %a : i32
  cf.br ^join(%r : i32)
^join(%x: i32):
  func.return %x : i32
}

// -----

func.func @one_branch_only(%c: i1, %a: i32) -> i32 {
  cf.cond_br %c, ^left, ^join
^left:
  // expected-note @below {{the operand is defined here}}
  %l = arith.addi %a, %a : i32
  cf.br ^join
^join:
  // expected-error @below {{'func.return' op operand #0 does not dominate this use}}
  func.return %l : i32
}

// -----

// A loop's body is dominated by what precedes the loop, also around the back edge.
// CHECK-LABEL: @loop
func.func @loop(%c: i1, %a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  cf.br ^body
^body:
  %1 = arith.addi %0, %a : i32
  cf.cond_br %c, ^body, ^exit
^exit:
  func.return %1 : i32
}

// -----

func.func @used_before_defined(%a: i32) -> i32 {
  // expected-error @below {{operand #1 does not dominate this use}}
  %0 = arith.addi %a, %1 : i32
  // expected-note @below {{the operand is defined here}}
  %1 = arith.addi %a, %a : i32
  func.return %0 : i32
}

// -----

// An unreachable block may use anything.
// CHECK-LABEL: @unreachable
func.func @unreachable(%a: i32) -> i32 {
  func.return %a : i32
^dead:
  func.return %0 : i32
^dead2:
  %0 = arith.addi %a, %a : i32
  cf.br ^dead
}

// -----

func.func @used_in_nested_region(%c: i1, %a: i32) {
  scf.if %c {
    // expected-error @below {{operand #0 does not dominate this use}}
    %0 = arith.addi %1, %a : i32
  }
  // expected-note @below {{the operand is defined here}}
  %1 = arith.addi %a, %a : i32
  func.return
}
