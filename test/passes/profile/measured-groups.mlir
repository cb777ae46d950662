// Times of ops that fuse: of those measured apart the sum, of those measured together the time
// once, and of a part of what was measured together none.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/apart.json},select-fusion,apply-fusion' | filecheck %s --check-prefix=APART
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/together.json},select-fusion,apply-fusion' | filecheck %s --check-prefix=TOGETHER
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/together.json},select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=PART
// RUN: %braid-opt %s -p 'select-fusion,apply-fusion,annotate-profile{file=%S/Inputs/apart.json}' | filecheck %s --check-prefix=LATER
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/apart.json},select-splits{memory=40B},apply-splits' | filecheck %s --check-prefix=SPLIT

// APART: braid.fused
// APART: braid.name = ["a", "b"], braid.seconds = 5.000000e+00
// APART-SAME: (tensor
// TOGETHER: braid.fused
// TOGETHER: braid.name = ["a", "b"]
// TOGETHER-SAME: braid.seconds = 4.000000e+00
// PART: costs: 2 roofline
// PART: braid.measured_with = ["a", "b"]
// LATER: braid.name = ["a", "b"], braid.seconds = 5.000000e+00
// SPLIT-NOT: braid.seconds
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %a = braid.exp %x {braid.name = "a"} : (tensor<16xf32>) -> tensor<16xf32>
  %b = braid.tanh %a {braid.name = "b"} : (tensor<16xf32>) -> tensor<16xf32>
  func.return %b : tensor<16xf32>
}
