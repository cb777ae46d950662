// The published example of a loop: what is best depends on the trip count.
// RUN: %braid-opt %s -p 'select-layouts{algorithm=fixed:l1}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=L1
// RUN: %braid-opt %s -p 'select-layouts{algorithm=fixed:l2}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=L2
// RUN: %braid-opt %s -p select-layouts --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=BEST
// RUN: %braid-opt %s -p 'select-layouts{ignore-profile}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=IGNORED

// One trip. A makes either layout for nothing: it costs the same both ways.
// L1: cost 0.09 seconds
// L2: cost 0.11 seconds
// BEST: cost 0.09 seconds, lower bound 0.09, gap 0.00%, 0 reorders
// IGNORED: cost 0.09 seconds
func.func @one(%n: index) {
  %zero = arith.constant 0 : index
  %step = arith.constant 1 : index
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.for %i = %zero to %n step %step iter_args(%v = %a) -> (tensor<4xf32>) {
    %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = braid.opaque "Add"(%v, %0) {layouts = [{operands = ["l1", "l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2", "l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.trip_count = 1.0 : f64}
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// Ten trips.
// L1: cost 0.63 seconds
// L2: cost 0.29 seconds
// BEST: cost 0.29 seconds, lower bound 0.29, gap 0.00%, 0 reorders
// IGNORED: cost 0.09 seconds
func.func @ten(%n: index) {
  %zero = arith.constant 0 : index
  %step = arith.constant 1 : index
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.for %i = %zero to %n step %step iter_args(%v = %a) -> (tensor<4xf32>) {
    %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = braid.opaque "Add"(%v, %0) {layouts = [{operands = ["l1", "l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2", "l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.trip_count = 10.0 : f64}
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// With reorders, the loop runs in one layout and B in the other: one trip …
// BEST: cost 0.052 seconds, lower bound 0.052, gap 0.00%, 1 reorders
module attributes {braid.reorder_costs = [
    {source = "l1", target = "l2", cost = 2.0e-3 : f64}, {source = "l2", target = "l1", cost = 2.0e-3 : f64}]} {
  func.func @one_mixed(%n: index) {
    %zero = arith.constant 0 : index
    %step = arith.constant 1 : index
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
    %r = scf.for %i = %zero to %n step %step iter_args(%v = %a) -> (tensor<4xf32>) {
      %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = braid.opaque "Add"(%v, %0) {layouts = [{operands = ["l1", "l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2", "l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {braid.trip_count = 1.0 : f64}
    %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}

// -----

// … and ten, where the reorder stands behind the loop.
// BEST: cost 0.232 seconds, lower bound 0.232, gap 0.00%, 1 reorders
module attributes {braid.reorder_costs = [
    {source = "l1", target = "l2", cost = 2.0e-3 : f64}, {source = "l2", target = "l1", cost = 2.0e-3 : f64}]} {
  func.func @ten_mixed(%n: index) {
    %zero = arith.constant 0 : index
    %step = arith.constant 1 : index
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
    %r = scf.for %i = %zero to %n step %step iter_args(%v = %a) -> (tensor<4xf32>) {
      %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = braid.opaque "Add"(%v, %0) {layouts = [{operands = ["l1", "l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2", "l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {braid.trip_count = 10.0 : f64}
    %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}
