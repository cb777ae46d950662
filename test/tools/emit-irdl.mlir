// RUN: %braid-opt --emit=irdl | FileCheck %s
// RUN: not %braid-opt --emit=irdl %s 2>&1 | FileCheck --check-prefix=INPUT %s
// RUN: not %braid-opt --emit=irdl --cse 2>&1 | FileCheck --check-prefix=INPUT %s

// INPUT: braid-opt: error: --emit=irdl writes the dialect and takes neither input nor passes

// CHECK: irdl.dialect @braid {

// An attribute with its parameter.
// CHECK:       irdl.attribute @layout {
// CHECK-NEXT:    %0 = irdl.base "#builtin.string"
// CHECK-NEXT:    irdl.parameters (tag: %0)
// CHECK-NEXT:  }

// Every operand has a constraint of its own: one that is used twice would bind.
// CHECK:       irdl.operation @add {
// CHECK-NEXT:    %0 = irdl.base "!builtin.tensor"
// CHECK-NEXT:    %1 = irdl.base "!builtin.tensor"
// CHECK-NEXT:    irdl.operands (inputs0: %0, inputs1: %1)
// CHECK-NEXT:    %2 = irdl.base "!builtin.tensor"
// CHECK-NEXT:    irdl.results (output: %2)
// CHECK-NEXT:  }

// A region.
// CHECK:       irdl.operation @fused {
// CHECK:         irdl.operands (inputs: variadic %0)
// CHECK:         irdl.results (outputs: variadic %1)
// CHECK-NEXT:    %2 = irdl.region with size 1
// CHECK-NEXT:    irdl.regions (body: %2)

// The same for values of several types: one variadic for each run of one type.
// CHECK:       irdl.operation @mixed_fused {
// CHECK:         irdl.operands (inputs0: variadic %0, inputs1: variadic %1,
// CHECK:         irdl.results (outputs0: variadic %64,

// A type of the dialect's own.
// CHECK:       irdl.operation @launch {
// CHECK-NEXT:    %0 = irdl.base @braid::@token

// Optional attributes are not mentioned: IRDL would require them.
// CHECK:       irdl.operation @opaque {
// CHECK:         irdl.attributes {"kind" = %2}
// CHECK-NEXT:  }
