// Dialects defined by IRDL are read, printed and checked; mlir-opt takes the same files.

// RUN: %braid-opt %s --irdl-file=%S/Inputs/shop.irdl.mlir --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not %braid-opt %s --split-input-file 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: %braid-opt --emit=irdl -o %t.irdl.mlir
// RUN: not %braid-opt %s --irdl-file=%t.irdl.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not %braid-opt %s --irdl-file=%t.none 2>&1 | FileCheck %s --check-prefix=NONE

// WITHOUT:    error: {{.*}}shop
// TWICE:      defines the dialect 'braid', which is registered already
// NONE:       braid-opt: error: {{.*}}.none

// CHECK-LABEL: func.func @right
// CHECK:         "shop.add"(%p, %p) : (!shop.price<i32>, !shop.price<i32>) -> !shop.price<i32>
// CHECK:         "shop.total"(%i, %i) {currency = "EUR"} : (i32, i32) -> ()
func.func @right(%p: !shop.price<i32>, %i: i32) {
  %0 = "shop.add"(%p, %p) : (!shop.price<i32>, !shop.price<i32>) -> !shop.price<i32>
  "shop.total"(%i, %i) {currency = "EUR"} : (i32, i32) -> ()
  "shop.total"() {currency = "EUR"} : () -> ()
  func.return
}

// -----

func.func @mixed(%p: !shop.price<i32>, %q: !shop.price<i64>) {
  // expected-error @+1 {{'shop.add' op}}
  %0 = "shop.add"(%p, %q) : (!shop.price<i32>, !shop.price<i64>) -> !shop.price<i32>
  func.return
}

// -----

func.func @wrong_type(%f: f32) {
  // expected-error @+1 {{'shop.total' op}}
  "shop.total"(%f) {currency = "EUR"} : (f32) -> ()
  func.return
}

// -----

func.func @no_attribute(%i: i32) {
  // expected-error @+1 {{currency}}
  "shop.total"(%i) : (i32) -> ()
  func.return
}

// -----

func.func @no_block() {
  // expected-error @+1 {{region 'body' has 0 blocks, expected 1}}
  "shop.room"() ({}) : () -> ()
  func.return
}
