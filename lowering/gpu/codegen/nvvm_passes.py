"""The upstream passes that take kernels in the `gpu` dialect to `nvvm`: the only list."""

NVVM_PASSES: tuple[str, ...] = (
    "gpu.module(gpu.func(convert-linalg-to-loops))",
    "gpu.module(gpu.func(convert-vector-to-scf{full-unroll=true}))",
    "lower-affine",
    "canonicalize",
    "cse",
    "gpu.module(gpu.func(loop-invariant-code-motion))",
    "gpu.module(convert-scf-to-cf)",
    # Subviews become address arithmetic, which is affine again.
    "gpu.module(gpu.func(memref-expand))",
    "expand-strided-metadata",
    "lower-affine",
    # Elementary functions are those of f32 and f64.
    "gpu.module(gpu.func(math-extend-to-supported-types{extra-types=f32,f64 target-type=f32}))",
    # Sums of vectors may be added up in any order; see docs/decisions/code-generation.md.
    "gpu.module(convert-vector-to-llvm{reassociate-fp-reductions=1})",
    # Every memref argument is one pointer: shapes are static.
    "gpu.module(convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=64})",
    "convert-ub-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
"""Without `convert-math-to-llvm`: functions are calls that `device_math` defines."""
