// Options of every kind, and errors in them.

// RUN: %braid-opt %s -p 'test-options{count=3}' | FileCheck %s --check-prefix=DEFAULTS
// DEFAULTS: test.options = "count=3 ratio=0.5 fast=False file_name='none' sizes=()
// DEFAULTS-SAME: names=('a', 'b') mode='latency' limit=None"

// RUN: %braid-opt %s -p 'test-options{ count=-3 ratio=1e-3 fast=true file-name=../a.json sizes=1,2 names=c mode=memory limit=64MiB }' | FileCheck %s --check-prefix=ALL
// ALL: test.options = "count=-3 ratio=0.001 fast=True file_name='../a.json' sizes=(1, 2)
// ALL-SAME: names=('c',) mode='memory' limit='64MiB'"

// A flag may stand alone, an underscore for a dash, an integer for a float; bytes need no unit.
// RUN: %braid-opt %s -p 'test-options{fast count=1 file_name=12 ratio=2 limit=65536}' | FileCheck %s --check-prefix=SHORT
// SHORT: test.options = "count=1 ratio=2.0 fast=True file_name='12' {{.*}} limit=65536"

// Quotes keep blanks, commas, brackets and numbers together; a backslash makes a character plain.
// RUN: %braid-opt %s -p 'test-options{count=1 file-name="a b,{c}=\"d\"" names="x, y",z limit="7"}' | FileCheck %s --check-prefix=QUOTED
// QUOTED: file_name='a b,{c}=\22d\22'
// QUOTED-SAME: names=('x, y', 'z')
// QUOTED-SAME: limit='7'

// A flag of the name of a pass takes the same options.
// RUN: %braid-opt %s --test-options='count=1 fast' --cse --test-options='{count=2}' | FileCheck %s --check-prefix=FLAGS
// FLAGS: test.options = "count=1 ratio=0.5 fast=True {{.*}}; count=2 ratio=0.5 fast=False

// RUN: not %braid-opt %s -p test-options 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: <pass-pipeline>:1:1: error: pass 'test-options' needs option 'count'
// MISSING: hint: its options are count=<int> (required), ratio=<float> (default 0.5), fast=<bool> (default false), file-name=<str> (default none),
// MISSING-SAME: sizes=<int,...> (default empty), names=<str,...> (default a,b),
// MISSING-SAME: mode=<memory | latency> (default latency), limit=<size> (default none)

// RUN: not %braid-opt %s -p 'cse,test-options{count=1 raito=2}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: <pass-pipeline>:1:26: error: pass 'test-options' has no option 'raito'
// UNKNOWN: {{^}}cse,test-options{count=1 raito=2}
// UNKNOWN: {{^ {25}\^$}}
// UNKNOWN: hint: did you mean 'ratio'?

// RUN: not %braid-opt %s -p 'test-options{xyz=1}' 2>&1 | FileCheck %s --check-prefix=UNLIKE
// UNLIKE: error: pass 'test-options' has no option 'xyz'
// UNLIKE: hint: its options are count=<int>

// RUN: not %braid-opt %s -p 'cse{fast=1}' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: <pass-pipeline>:1:5: error: pass 'cse' has no option 'fast'
// NONE: hint: pass 'cse' takes no options

// RUN: not %braid-opt %s -p 'test-options{count=1 file_name=a file-name=b}' 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: <pass-pipeline>:1:34: error: option 'file-name' of pass 'test-options' is given twice

// RUN: not %braid-opt %s -p 'test-options{count=1.5}' 2>&1 | FileCheck %s --check-prefix=INT
// INT: <pass-pipeline>:1:14: error: option 'count' of pass 'test-options' is '1.5', expected <int>
// INT-NOT: hint

// RUN: not %braid-opt %s -p 'test-options{count=1 ratio=nan}' 2>&1 | FileCheck %s --check-prefix=FLOAT
// FLOAT: error: option 'ratio' of pass 'test-options' is 'nan', expected <float>

// RUN: not %braid-opt %s -p 'test-options{count=1 fast=maybe}' 2>&1 | FileCheck %s --check-prefix=BOOL
// BOOL: error: option 'fast' of pass 'test-options' is 'maybe', expected <bool>

// RUN: not %braid-opt %s -p 'test-options{count=1 mode=speed}' 2>&1 | FileCheck %s --check-prefix=ENUM
// ENUM: error: option 'mode' of pass 'test-options' is 'speed', expected <memory | latency>

// RUN: not %braid-opt %s -p 'test-options{count=1 sizes=1,x}' 2>&1 | FileCheck %s --check-prefix=LIST
// LIST: error: option 'sizes' of pass 'test-options' is '1,x', expected <int,...>

// RUN: not %braid-opt %s -p 'test-options{count}' 2>&1 | FileCheck %s --check-prefix=NO-VALUE
// NO-VALUE: error: option 'count' of pass 'test-options' has no value, expected <int>

// RUN: not %braid-opt %s -p 'test-options{count=1 file-name=a,b}' 2>&1 | FileCheck %s --check-prefix=COMMA
// COMMA: error: option 'file-name' of pass 'test-options' is 'a,b', expected <str>
// COMMA: hint: options are written {name=value other="a b, c"}

// RUN: not %braid-opt %s -p 'test-options{count=1 ="2"}' 2>&1 | FileCheck %s --check-prefix=MALFORMED
// MALFORMED: <pass-pipeline>:1:22: error: malformed options of pass 'test-options' at '="2"'
// MALFORMED: hint: options are written {name=value other="a b, c"}

// RUN: not %braid-opt %s -p 'test-options{count=1 sizes=1,,2}' 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: <pass-pipeline>:1:22: error: malformed options of pass 'test-options' at 'sizes=1,,2'

// RUN: not %braid-opt %s -p 'test-options{count=1 file-name=a"b"}' 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: malformed options of pass 'test-options' at 'file-name=a"b"'

// RUN: not %braid-opt %s -p 'test-failure{how=post-init}' 2>&1 | FileCheck %s --check-prefix=REJECTED
// REJECTED: error: pass 'test-failure' rejects its options: these do not go together
// REJECTED: hint: its options are how=<crash | invalid-ir | diagnostic | post-init> (default crash)

// An invalid option of bytes is found when the pass runs.
// RUN: not %braid-opt %s -p 'select-layouts{memory-limit=64XB}' 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: 'memory-limit': '64XB' is not a size; write bytes, or a unit as in 64MiB or 64MB
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// No time limit is negative, nor a number of iterations.
// RUN: not %braid-opt %s -p 'split-concats{time-limit=-1}' 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: option 'time-limit' of pass 'split-concats' is '-1', expected seconds from 0 on
// RUN: not %braid-opt %s -p 'select-layouts{default-trip-count=-1}' 2>&1 | FileCheck %s --check-prefix=TRIPS
// TRIPS: error: pass 'select-layouts' rejects its options: default-trip-count is -1, expected a number from 0 on
