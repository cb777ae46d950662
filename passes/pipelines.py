"""Named pipelines as data: a name stands for the passes in its tuple, wherever a pass may."""

SIMPLIFY = ("canonicalize", "cse")
"""Fold constants and merge repeated computations."""

DEFAULT = (
    # A model's own functions are part of it; functions from here on are kernels and clusters.
    "inline",
    # While inputs and outputs are those of the model, and before anything reads their dims.
    "append-in-place",
    # Where data decide sizes: every pass after it sees functions whose sizes are known at once.
    "split-phases",
    # Before decisions, since specialized functions get their own: a step is one new row.
    "add-specializations",
    # While ops are the model's own: their rules give the checks of open sizes for each run.
    "collect-size-checks",
    # Code may rely on what each run checks: fewer sizes are then written in different ways.
    "simplify-sizes",
    # Every decision that follows is made at these.
    "select-likely-sizes",
    # Importers leave identities, constant shapes and repeated expressions behind; every later
    # pass is simpler and faster without them.
    "simplify",
    # Before devices are assigned, since some do not run integers; constants are folded again.
    "convert-qdq-to-integers",
    "simplify",
    # Which device runs what; the mapping lists of the target decide unless a strategy is asked for.
    "assign-devices",
    # If ops have devices. Ops that are inserted from here on join the clusters of their readers.
    "select-clusters",
    # In which types devices compute. From here on there are conversions between ops.
    "select-types",
    "apply-types",
    # Types in which backends compute, where they differ from stored ones, once devices are known.
    "prepare-backends{before=folding}",
    # Before scales are folded and paddings expanded: both then see one kind of convolution.
    "expand-transposed-convolutions",
    # Known operands are then on the right, where scales are folded into them and kernels pack them.
    "transpose-known-operands",
    # After what reads weights, so that these stay in the types of the model.
    "sink-conversions",
    # Normalizations become part of weights while they still stand right after the products;
    # fusion would hide them in groups.
    "fold-scale-into-weights",
    # Expressions of weights leave the graph before fusion, and duplicates that folding made are
    # merged.
    "simplify",
    "hoist-parameter-expressions",
    # Each backend has its own idea of ops that kernels can be made of.
    "prepare-backends",
    # Fusion groups ops of one shape: ops on the result of a matmul join it, even through a reshape.
    "sink-reshapes",
    # Groups come before layouts, since layouts are those of the groups' operands and results.
    "select-fusion",
    "apply-fusion",
    # Gathered operands of a product are read in place, if the product's kernel can.
    "fuse-gathers",
    # The same for 16-bit numbers with which f32 is computed.
    "fuse-conversions",
    # Reshapes are row-major; a shuffle of channels between two of them need not be.
    "fuse-shuffles",
    # Reorders of values from before a loop can then be placed before it.
    "hoist-views",
    "select-layouts",
    "apply-layouts",
    # Again: the weights' new layouts are made at compile time.
    "hoist-parameter-expressions",
    # Ops of upstream dialects become groups only now: they know no layout but row-major.
    "group-upstream-ops",
    # Layouts are chosen over the whole graph; later passes work on the functions of each device.
    "apply-clusters",
    # Launches are known from here on. Devices and their copy engines work concurrently.
    "search-order{objective=latency launches-only=true time-limit=2}",
    "apply-order",
    # Values between launches, in the order of these; views and waits take no memory.
    "insert-channels",
    # The order with the least peak memory, in which launches keep their places; groups and layouts
    # have decided what has a buffer.
    "search-order{time-limit=2}",
    "apply-order",
    # Concatenated, padded and sliced tensors are then in their final place, as far as kernels can
    # address it.
    "select-storage",
    # Passes of a backend on its functions, when all of this is decided.
    "prepare-backends{before=kernels}",
    # The storage of tensors is decided, so readers of their parts can become one kernel.
    "hoist-slices",
    # Tuned schedules are found by the group and the storage of its tensors.
    "select-schedules",
    # From here on the order of kernels is fixed. Memory is planned by the lowering, which knows
    # how much scratch each kernel needs.
    "outline-kernels",
)
"""The passes that `braid compile` runs before code generation."""

_DECIDED = DEFAULT[DEFAULT.index("assign-devices") + 1 :]
GROUPS = _DECIDED[: _DECIDED.index("apply-fusion") + 1]
"""The passes from devices to groups, for a trial of what ops cost."""
LAYOUTS = _DECIDED[: _DECIDED.index("apply-layouts") + 1]
"""The passes from devices to groups in their layouts, for the same."""

PIPELINES: dict[str, tuple[str, ...]] = {
    "default": DEFAULT,
    "simplify": SIMPLIFY,
}
