// RUN: %braid-opt -p materialize-layouts --verify-diagnostics --split-input-file %s

func.func @left_over(%x: tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">> {
  // expected-error@+1 {{'braid.neg' cannot work on tensors with layouts}}
  %0 = braid.neg %x : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">>
  func.return %0 : tensor<4x4xf32, #braid.layout<"ba">>
}
