// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml}" --split-input-file 2>&1 | FileCheck %s
// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml pin=op:exp=gpu}" --split-input-file 2>&1 | FileCheck %s --check-prefix=PIN
// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml pin=op:tanh=gpu:0,t=cpu:0}" --split-input-file 2>&1 | FileCheck %s --check-prefix=AGREE
// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml pin=conv1=tpu:0}" --split-input-file 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml pin=conf1=gpu:0}" --split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml pin=conv1}" --split-input-file 2>&1 | FileCheck %s --check-prefix=FORM

// CHECK: error: no device of target 'board' runs opaque op 'odd' 'strange'
// CHECK: hint: it names backends of its own; those of the target are 'cpu', 'gpu', 'fpga'
func.func @unsupported(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "odd"(%x) {backends = ["tpu"], braid.name = "strange"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.exp' op is pinned to gpu:0, which does not run it
// CHECK: hint: it runs on cpu:0
// PIN: error: 'braid.exp' op is pinned to gpu
// DEVICE: error: pin 'conv1=tpu:0' names 'tpu:0', no device of target 'board'
// DEVICE: hint: did you mean 'gpu:0'?
// NAME: error: pin 'conf1=gpu:0' is about no op of the model
// NAME: hint: did you mean 'conv1'?
// FORM: error: a pin is 'conv1', expected NAME=DEVICE or op:KIND=DEVICE
func.func @pinned(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.exp %x {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.exp %0 {braid.name = "conv1"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// CHECK: error: no device runs all ops of colocation 'w'
// CHECK: note: it also holds this one
func.func @colocated(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "a"(%x) {braid.colocate = "w", backends = ["gpu"]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "d"(%0) {braid.colocate = "w", backends = ["fpga"]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// The gpu has a megabyte.
// CHECK: error: the memories of the devices are too small for the ops that have to run there: 1 ops that may run only on gpu:0 hold 2 MiB, the largest 2 MiB; memory is 977 KiB
// CHECK: hint: a device holds the weights and results of its ops; partition="latency" or throughput
func.func @memory(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %0 = braid.opaque "a"(%x) {backends = ["gpu"]} : (tensor<512x1024xf32>) -> tensor<512x1024xf32>
  func.return %0 : tensor<512x1024xf32>
}

// -----

// Devices that run the op, but not both at once.
// AGREE: error: 'braid.tanh' op 't' is pinned to no device: 'braid.device' says cpu:0 and pin 'op:tanh=gpu:0' and pin 't=cpu:0' contradict each other
// AGREE: hint: all pins that are about an op hold
func.func @contradiction(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.tanh %x {braid.device = "cpu:0", braid.name = "t"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
