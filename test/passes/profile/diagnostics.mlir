// What a profile leaves out or contradicts: a warning that names the op, and a default.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/holes.csv}' 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=WARN < %t
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/loop.csv}' 2>&1 | filecheck %s --check-prefix=FOREIGN
// RUN: not %braid-opt %s -p 'annotate-profile{file=%S/Inputs/negative.csv}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not %braid-opt %s -p 'annotate-profile{file=%S/Inputs/none.csv}' 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %braid-opt %s -p 'annotate-profile{file=%S/Inputs/untitled.csv}' 2>&1 | filecheck %s --check-prefix=UNTITLED
// RUN: echo '{"ops": 5}' > %t.json
// RUN: not %braid-opt %s -p 'annotate-profile{file=%t.json}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: echo '[]' > %t.json
// RUN: not %braid-opt %s -p 'annotate-profile{file=%t.json}' 2>&1 | filecheck %s --check-prefix=LIST

// NUMBER: .json: error: not a profile: 'ops' is not an object
// RUN: printf 'Operation Name,#Occurrences,Total time\nmore,1,1\n' > %t.csv
// RUN: not %braid-opt %s -p 'annotate-profile{file=%t.csv}' 2>&1 | filecheck %s --check-prefix=UNIT
// RUN: printf 'Operation Name,#Occurrences,Total time (weeks)\nmore,1,1\n' > %t.csv
// RUN: not %braid-opt %s -p 'annotate-profile{file=%t.csv}' 2>&1 | filecheck %s --check-prefix=WEEKS
// RUN: not %braid-opt %s -p 'annotate-profile{file=%S/Inputs/loop.csv unseen=0.6}' 2>&1 | filecheck %s --check-prefix=UNSEEN

// LIST: .json: error: not a profile: none of the 0 tables has a column of op names
// UNIT: .csv: error: not a profile: the column 'Total time' names no unit of time (s, sec, ms, us,
// WEEKS: .csv: error: not a profile: the column 'Total time (weeks)' names no unit of time
// UNSEEN: error: unseen is 0.6, expected a probability from 0 to 0.5
// NEGATIVE: negative.csv: error: not a profile: -3 is neither a count nor a time
// MISSING: none.csv: error: cannot read profile
// UNTITLED: untitled.csv: error: not a profile: a column is missing; there are ['operation name', 'how often']
// FOREIGN: warning: the profile '{{.*}}loop.csv' has no counts of any op in the module
// FOREIGN: hint: was it taken with another model?

// CHECK: braid.branch_probability = 0.642
// CHECK: braid.branch_probability = 9.990000e-01
// CHECK-NOT: braid.branch_probability
// CHECK-NOT: braid.trip_count
func.func @main(%c: i1, %n: index) {
  // WARN: diagnostics.mlir:{{.*}}: warning: 'more' has counts that contradict each other: 9 + 5 of 10; 0.643 and 0.357 are taken as probabilities
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "more", then = "more/then", else = "more/else"}}
  // WARN: warning: 'above' has counts that contradict each other: 11 + -1 of 10; 1 and 0 are taken as probabilities
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "above", then = "above/then"}}
  // WARN: warning: 'condition' has no count of its condition in the profile; both
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "condition", then = "more/then"}}
  // WARN: warning: 'branchless' has no counts of its branches in the profile; both
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "branchless", then = "x", else = "y"}}
  // WARN: warning: 'idle' is never reached in the profile; both
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "idle", then = "idle", else = "idle"}}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // WARN: warning: 'endless' has no count of its iterations in the profile; the default trip count is taken
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "endless", next = "x"}}
  // WARN: warning: 'unknown' has no count of how often it is entered in the profile; the default
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "unknown", next = "more"}}
  // WARN: warning: 'idle' has counts that contradict each other: 10 iterations though it is never entered
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "idle", next = "more"}}
  // WARN: warning: 'idle' is never entered in the profile; the default
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "idle", next = "idle"}}
  // WARN: warning: 'scf.for' has no count of how often it is entered in the profile; the default
  scf.for %i = %zero to %n step %one {
  }
  func.return
}

// Manual attributes stay if the profile has nothing better.
// CHECK-LABEL: @by_hand
// CHECK: braid.branch_probability = 2.500000e-01
// CHECK: braid.trip_count = 3.000000e+00
// CHECK: braid.opaque "twice"{{.*}} braid.seconds = {{2.99|3.00}}
func.func @by_hand(%c: i1, %n: index) {
  // WARN: warning: 'condition' has no counts of its branches in the profile; braid.branch_probability stays as it is
  scf.if %c {
  } else {
  } {braid.profile_keys = {condition = "condition"}, braid.branch_probability = 0.25 : f64}
  %zero = arith.constant 0 : index
  // WARN: warning: 'loop' has no count of its iterations in the profile; braid.trip_count stays as it is
  scf.for %i = %zero to %n step %n {
  } {braid.name = "loop", braid.trip_count = 3.0 : f64}
  // Two devices ran it: as often as the one of them, for as long as both together.
  braid.opaque "twice"() {braid.name = "twice"} : () -> ()
  func.return
}
// RUN: echo '{"ops": {"a": {"count": 1e-300, "seconds": 1e10}}}' > %t.json
// RUN: not %braid-opt %s -p 'annotate-profile{file=%t.json}' 2>&1 | filecheck %s --check-prefix=FLOAT
// FLOAT: .json: error: not a profile: 1e+10 s of 1e-300 runs are more than a float holds for one
