// RUN: %braid-opt -p convert-braid-to-linalg --verify-diagnostics --split-input-file %s

func.func @parameter() -> tensor<4xf32> {
  // expected-error@+1 {{no code for 'braid.parameter'}}
  %0 = braid.parameter {key = "w"} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
