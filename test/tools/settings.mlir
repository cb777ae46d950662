// The environment and the command write settings on the module; passes read them there alone.
// RUN: %braid-opt %s -p simplify-products | filecheck %s --check-prefix=FAST
// RUN: env BRAID_NUMERICS=strict %braid-opt %s -p simplify-products -o %t.mlir
// RUN: filecheck %s --check-prefix=STRICT --input-file %t.mlir
// RUN: %braid-opt %s --settings=numerics=strict -p simplify-products | filecheck %s --check-prefix=STRICT
// RUN: env BRAID_NUMERICS=fast %braid-opt %t.mlir -p simplify-products | filecheck %s --check-prefix=STRICT
// RUN: %braid-opt %t.mlir --settings='numerics=fast, emulate=true' -p simplify-products | filecheck %s --check-prefixes=FAST,BOTH
// RUN: not %braid-opt %s --settings=numerics=exact 2>&1 | filecheck %s --check-prefix=EXACT
// RUN: not env BRAID_NUMERICS=exact %braid-opt %s 2>&1 | filecheck %s --check-prefix=EXACT

// BOTH: braid.settings = #braid.settings<{emulate = true}>
// FAST: braid.matmul
// FAST-NEXT: braid.constant
// FAST-NEXT: braid.mul

// STRICT: braid.settings = #braid.settings<{numerics = "strict"}>
// STRICT: braid.mul
// STRICT-NEXT: braid.transpose
// STRICT-NEXT: braid.matmul

// EXACT: error: {{(BRAID_NUMERICS of the environment: )?}}numerics are 'exact', expected one of strict, fast
func.func @main(%q: tensor<8x1x64xf32>, %k: tensor<8x2048x64xf32>) -> tensor<8x1x2048xf32> {
  %c = braid.constant {value = dense<0.125> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.mul %k, %c : (tensor<8x2048x64xf32>, tensor<1x1x1xf32>) -> tensor<8x2048x64xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<8x2048x64xf32>) -> tensor<8x64x2048xf32>
  %2 = braid.matmul %q, %1 : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  func.return %2 : tensor<8x1x2048xf32>
}
