"""The upstream passes that take a group on tensors to one on buffers: the only list."""

BUFFERIZATION_PASSES: tuple[str, ...] = (
    # Groups of upstream ops may hold arith and math on whole tensors.
    "func.func(convert-elementwise-to-linalg)",
    "canonicalize",
    "cse",
    # Producers go into their consumers: what has one reader gets no buffer.
    "linalg-fuse-elementwise-ops",
    "canonicalize",
    "cse",
    # tensor.pad becomes a fill and an insert_slice, which bufferize in place.
    "convert-tensor-to-linalg",
    # What is written into a slice or into the result is computed there.
    "eliminate-empty-tensors",
    "one-shot-bufferize",
    "canonicalize",
    "cse",
    # Copies of a buffer to itself show only now.
    "canonicalize",
)
