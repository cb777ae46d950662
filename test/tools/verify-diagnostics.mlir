// RUN: %braid-opt %s --split-input-file --verify-diagnostics | filecheck %s --allow-empty

func.func @same_line(%a: i32) -> i32 {
  func.return %b : i32 // expected-error {{use of value '%b', which is not defined}}
}

// -----

func.func @next_line(%a: i32, %b: i64) {
  // expected-error @+1 {{'arith.addi'}}
  %0 = "arith.addi"(%a, %b) : (i32, i64) -> i32
  func.return
}

// -----

func.func @previous_line(%a: i32, %b: i64) {
  %0 = "arith.addi"(%a, %b) : (i32, i64) -> i32
  // expected-error@-1 {{does not verify}}
  func.return
}

// -----

func.func @below_and_above(%a: i32) -> i32 {
  // expected-error @below {{operand #0 does not dominate this use}}
  // expected-note-re @below {{the operand is {{[a-z]+}} here}}
  %0 = arith.addi %0, %a : i32
  func.return %0 : i32
}

// -----

func.func @above(%a: i32) -> i32 {
  %0 = arith.addi %0, %a : i32
  // expected-error @above {{operand #0 does not dominate this use}}
  // expected-note @above {{the operand is defined here}}
  func.return %0 : i32
}

// -----

// CHECK-LABEL: @nothing_is_wrong
func.func private @nothing_is_wrong()
