"""The upstream passes that take a kernel or a program to the `llvm` dialect: the only list."""

LLVM_PASSES: tuple[str, ...] = (
    # Remaining linalg ops become loops; kernels of families are loops already.
    "func.func(convert-linalg-to-loops)",
    "func.func(convert-vector-to-scf{full-unroll=true})",
    "lower-affine",
    "func.func(loop-invariant-code-motion)",
    "canonicalize",
    "cse",
    "convert-scf-to-cf",
    # Subviews become address arithmetic, which is affine again.
    "func.func(memref-expand)",
    "expand-strided-metadata",
    "lower-affine",
    # LLVM has no half-precision math functions to call.
    "func.func(math-extend-to-supported-types{extra-types=f32,f64 target-type=f32})",
    # LLVM would call a runtime library for bf16 conversions that the CPU lacks.
    "func.func(arith-expand{include-bf16=true})",
    # Sums of vectors may be added up in any order; see docs/decisions/code-generation.md.
    "convert-vector-to-llvm{reassociate-fp-reductions=1}",
    # Functions with an LLVM intrinsic first: the rest are calls to libm.
    "convert-math-to-llvm{approximate-log1p=0}",
    "convert-math-to-libm",
    "finalize-memref-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    # Every memref argument is one pointer: shapes are static.
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1}",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
