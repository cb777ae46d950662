// A path beside slow stages has room for all that is in these, so that none waits for it.

// RUN: %braid-opt %s -p 'insert-channels{target=%S/Inputs/five.toml}' --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: 5 stages on core:0, core:1, core:2, core:3, core:4: a result each 1.000 ms
// REMARK-SAME: 4 channels of 2 to 5 slots, 11 KiB; 7 requests
// CHECK-LABEL: func.func @chain
// CHECK:         @first(%x) {braid.slots = array<i64: 5>
// CHECK:         @second(%a) {braid.slots = array<i64: 2>
// CHECK:         @third({{.*}}) {braid.slots = array<i64: 2>
// CHECK:         @fourth({{.*}}) {braid.slots = array<i64: 2>
// CHECK:         @last({{.*}}) {braid.slots = array<i64: 0>
!t = tensor<256xf32>
func.func @chain(%x: !t) -> !t {
  %a, %0 = braid.launch async [] @first(%x) : (!t) -> !t
  %b, %1 = braid.launch async [%0] @second(%a) : (!t) -> !t
  %c, %2 = braid.launch async [%1] @third(%b) : (!t) -> !t
  %d, %3 = braid.launch async [%2] @fourth(%c) : (!t) -> !t
  %e, %4 = braid.launch async [%3, %0] @last(%d, %a) : (!t, !t) -> !t
  %y = braid.await [%4] %e : (!t) -> !t
  func.return %y : !t
}
func.func private @first(%0: !t) -> !t attributes {braid.device = "core:0"} {
  %1 = braid.opaque "first"(%0) {cost = 1.0e-3 : f64} : (!t) -> !t
  func.return %1 : !t
}
func.func private @second(%0: !t) -> !t attributes {braid.device = "core:1"} {
  %1 = braid.opaque "second"(%0) {cost = 1.0e-3 : f64} : (!t) -> !t
  func.return %1 : !t
}
func.func private @third(%0: !t) -> !t attributes {braid.device = "core:2"} {
  %1 = braid.opaque "third"(%0) {cost = 1.0e-3 : f64} : (!t) -> !t
  func.return %1 : !t
}
func.func private @fourth(%0: !t) -> !t attributes {braid.device = "core:3"} {
  %1 = braid.opaque "fourth"(%0) {cost = 1.0e-3 : f64} : (!t) -> !t
  func.return %1 : !t
}
func.func private @last(%0: !t, %1: !t) -> !t attributes {braid.device = "core:4"} {
  %2 = braid.opaque "last"(%0, %1) {cost = 1.0e-3 : f64} : (!t, !t) -> !t
  func.return %2 : !t
}
