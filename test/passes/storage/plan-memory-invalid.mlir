// RUN: %braid-opt %s -p plan-memory --verify-diagnostics

func.func @open() -> tensor<?xf32> {
  // expected-error@+1 {{'func.call' has an open dim in tensor<?xf32>; memory cannot be planned}}
  %y = func.call @k() : () -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
func.func private @k() -> tensor<?xf32>
