// A pin of a name holds for all parts of what has it, and for nothing whose name only begins so.
// RUN: %braid-opt %s -p "assign-devices{target=host-2 pin=y=cpu:1}" | FileCheck %s
// RUN: not %braid-opt %s -p "assign-devices{target=host-2 pin=node=cpu:1}" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: braid.neg %x {braid.name = "y/neg"{{.*}}braid.device = "cpu:1"
// CHECK: braid.exp {{.*}}braid.name = "y"{{.*}}braid.device = "cpu:1"
// CHECK: braid.tanh {{.*}}braid.name = "y2"{{.*}}braid.device = "cpu:0"
// UNKNOWN: error: pin 'node=cpu:1' is about no op of the model
// UNKNOWN-NEXT: hint: ops have the names of what they make, which `braid import` shows; op:conv is all of a kind
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.neg %x {braid.name = "y/neg"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.exp %0 {braid.name = "y"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.tanh %1 {braid.name = "y2"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
