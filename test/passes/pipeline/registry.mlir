// Passes of braid, of xDSL and of installed packages are found by name; braid's come first.

// RUN: %started-braid-opt --help | FileCheck %s
// CHECK-LABEL: passes of braid:
// CHECK: {{^  apply-fusion  .* in the place of the group's last op.$}}
// CHECK: {{^  canonicalize  }}
// CHECK-NOT: {{^  canonicalize  }}
// CHECK: {{^  cse   .*Merges ops that compute the same}}
// CHECK-NOT: {{^  cse  }}
// CHECK: {{^  expand-transposed-convolutions$}}
// CHECK: {{^   +Replaces every `braid.conv_transpose`}}
// CHECK: {{^  split-concats  }}
// CHECK-LABEL: named pipelines:
// CHECK: {{^  simplify +canonicalize,cse$}}
// CHECK-LABEL: passes of xDSL and installed packages:
// CHECK-NOT: {{^  cse  }}
// CHECK: {{^  convert-memref-to-ptr$}}
// CHECK: {{^      lower-func=<bool> \(default false\)$}}
// CHECK: {{^  test-options  +Writes its options, of every kind there is, to the module.$}}
// CHECK: {{^      count=<int> \(required\)$}}
// CHECK: {{^      ratio=<float> \(default 0.5\)$}}
// CHECK: {{^      fast=<bool> \(default false\)$}}
// CHECK: {{^      file-name=<str> \(default none\)$}}
// CHECK: {{^      sizes=<int,...> \(default empty\)$}}
// CHECK: {{^      names=<str,...> \(default a,b\)$}}
// CHECK: {{^      mode=<memory \| latency> \(default latency\)$}}
// CHECK: {{^      limit=<size> \(default none\)$}}

// All of them run in one pipeline.
// RUN: %braid-opt %s -p 'cse,arith-add-fastmath{flags=fast},test-options{count=1}' | FileCheck %s --check-prefix=TOGETHER
// TOGETHER: test.options = "count=1
// TOGETHER: arith.addf %a, %a fastmath<fast>
// TOGETHER-NOT: arith.addf

// A package that cannot be loaded is an error, not one pass less.
// RUN: not %with-broken-package %started-braid-opt %s 2>&1 | FileCheck %s --check-prefix=BROKEN
// BROKEN: braid-opt: error: a package that extends xDSL cannot be loaded: No module named 'no_such_module'
// BROKEN: hint: see the entry points of group 'xdsl.universe' of the installed packages
func.func @f(%a: f32) -> (f32, f32) {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %a : f32
  func.return %0, %1 : f32, f32
}
