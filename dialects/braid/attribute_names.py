"""The names of braid's attributes on ops, functions and modules, each once, by who decides.

An attribute that a decision pass writes is read and removed by its apply pass. Attributes that
facts about the model need (names, profiles) come first.
"""

from functools import cache

NAMESPACE = "braid."

# ---- Facts about the model ----

NAME = "braid.name"
"""The stable names of an op: a string, or an array of them (see `names`)."""
BOUNDARY = "braid.boundary"
"""On the module: the inputs and outputs that are text or mappings, and the texts (see `ports`)."""
PARAMETERS = "braid.parameters"
"""On the module: its parameter file, relative to the module's own file."""
PAIRABLE = "braid.pairable"
"""A unit attribute on a product of bytes: its weight can be stored in pairs (`:pairs`)."""
MERGED_GROUPS = "braid.merged_groups"
"""On a convolution: how many of its groups are to be one, an integer."""
PREPARED_KEYS = "braid.keys"
"""On `@prepare`: the keys under which its results are parameters, one string each."""
VARIANT = "braid.variant"
"""On a function: the sizes of the model's open dims, by name, that it is for."""
DIMS = "braid.dims"
"""On arguments and results: which of the model's open dims each dim is, "" for none."""
VALUE_SIZES = "braid.value_sizes"
"""On an argument of i32 or i64: the symbols that its elements are, `#braid.sizes<["k"]>`."""
STATE = "braid.state"
"""On an argument: the output whose value it takes in the next run."""
DIM_ORDER = "braid.dim_order"
"""On an argument or result: which of its dims each one was in the model as it was read."""
APPENDED = "braid.appended"
"""On an argument with a state: the output begins with its elements, and has more after them."""
SPECIALIZE = "braid.specialize"
"""On a function: sizes of open dims for which it gets functions of their own, an array."""
SPECIALIZED = "braid.specialized"
"""On a function: the open dims of the model that have one size in it (see `variants`)."""
PHASE = "braid.phase"
"""On a function: its number among the phases of a model whose data decide sizes."""
PHASE_OUTPUTS = "braid.phase_outputs"
"""On the module: for each output of such a model a pair of its name and the name of a phase's
value."""
SYMBOLS = "braid.symbols"
"""On a function: the assumptions about each symbol of sizes in its types, by name:
`{batch = #braid.symbol<{min = 1 : i64}>}`."""
OPEN_OP = "braid.open_op"
"""On a plain op at likely sizes, the name and the attributes of the op with sizes that it is of."""

OPEN_TYPES = "braid.open_types"
"""On ops of a copy of a module that was made to decide at likely sizes: an array of the types in
the original module, operands first, then results."""
SIZE_CHECKS = "braid.size_checks"
"""On a function: the assumptions of its ops about sizes, which each run has to check, an array of
`{size = #braid.sizes<["batch - count"]>, zero = true, message = "…"}`: without `zero` the size must
not be negative."""
BRANCH_SIZE_CHECKS = "braid.branch_size_checks"
"""On a conditional op: for each of its regions, the checks of sizes on which its ops rely, an array
like `braid.size_checks`; a run checks them if it takes the branch."""
PADDED_FROM = "braid.padded_from"
"""On the module: by open dim, the least size of which inputs may be padded up to a variant."""

# ---- Where ops run: the driver, assign-devices, select-clusters ----

TARGET = "braid.target"
"""On the module: `#braid.target<"host", {cpu = "haswell"}>`, the target for which it is
compiled."""
SETTINGS = "braid.settings"
"""On the module: `#braid.settings<{numerics = "strict"}>`, the other settings that change its
code."""
DEVICE = "braid.device"
"""On an op or a function: the device of the target that runs it, such as "gpu:0". On a module: that
of ops and functions that name none."""
REPLICAS = "braid.replicas"
"""On an op or a function with a device: devices of the same kind, which take turns with it at the
requests of a stream: `["cpu:1"]`."""
CANDIDATES = "braid.candidates"
"""On an op: backends that could run it, each with a priority: `{gpu = 1, fpga = 2}`, 1 is best."""
COLOCATE = "braid.colocate"
"""On ops: a name; ops with the same one run on the same device."""
CLUSTER = "braid.cluster"
"""On ops: the number of the cluster that an op belongs to, an integer."""
COMPUTE_TYPE = "braid.compute_type"
"""On an op: the floating-point type that its device computes it in, such as `f16`."""
TOLERANCE = "braid.tolerance"
"""On an op or a function: the relative error ‖y − ref‖∞ / ‖ref‖∞ that results may have, since the
device computes in another type; a float."""
MODEL_TYPE = "braid.model_type"
"""On a product: the type of its operands in the model, where it computes in another: `bf16`."""
PRODUCT_TYPE = "braid.product_type"
"""On a product: the type to which its operands are rounded, such as `bf16`; sums are in f32."""
HOST_STAGE = "braid.host_stage"
"""A unit attribute on a function of the host: it runs on the thread that launches it, and may
launch others."""
SLOTS = "braid.slots"
"""On a launch: `array<i64>` with the number of buffers of each result in a stream, which
consecutive requests take in turn; 0 for a result in the caller's buffer."""
STAGE_SECONDS = "braid.stage_seconds"
"""On a launch: seconds that it is expected to take, a float."""
REQUESTS = "braid.requests"
"""On a function: how many requests of a stream are under way at once."""

# ---- How often ops run: annotate-profile ----

PROFILE = "braid.profile"
"""On the module: a unit attribute that it was profiled; control flow without counts gets
defaults."""
PROFILE_KEYS = "braid.profile_keys"
"""On control flow: a dictionary of the ops whose executions tell about it (see `profile_keys`)."""
BRANCH_PROBABILITY = "braid.branch_probability"
"""On `scf.if`: of the first region, a float."""
CASE_PROBABILITIES = "braid.case_probabilities"
"""On `scf.index_switch`: of its cases and, last, of the default, an `array<f64>`."""
TRIP_COUNT = "braid.trip_count"
"""On loops: iterations each time that they are entered, a float."""
CHECK_COUNT = "braid.check_count"
"""On `scf.while`: runs of its first region per entry, a float; by default the trip count plus
one."""
SECONDS = "braid.seconds"
"""On an op that was profiled: seconds of one run, a float."""
LAYOUT_SECONDS = "braid.layout_seconds"
"""On such an op: seconds of one run of its kernel by choice of layouts, a dictionary with keys such
as `acdb,cdba->acdb` for two operands and a result."""
MEASURED_WITH = "braid.measured_with"
"""On such an op: the names of all ops whose runs its times are of, an array of strings; without
it, the op's own. The times belong to the group of all ops with these names."""

# ---- Which ops form a kernel: select-fusion, select-rematerialization ----

FUSION_GROUP = "braid.fusion_group"
"""Number of the group that an op belongs to, unique within its function."""
REMATERIALIZATION = "braid.rematerialization"
"""On a function or the module: a dictionary with the options of the pass as they are in Python."""
RECOMPUTE_SETS = "braid.recompute_sets"
"""On a member: the numbers of its sets, `array<i64>`."""
RECOMPUTE_OPERANDS = "braid.recompute_operands"
"""On a reader: for each operand the number of the set that it comes from, or -1."""
RECOMPUTED = "braid.recomputed"
"""On a copy: its number, which also keeps copies from being merged again."""

# ---- How tensors are stored: select-layouts, select-storage ----

LAYOUTS = "braid.layouts"
"""On a compute op `{operands = […], results = […]}`, on control flow `{carried = […]}`."""
REORDERS = "braid.reorders"
"""On the function: an array of `{value = …, source = …, target = …, block = …}`."""
REORDER_COSTS = "braid.reorder_costs"
"""On the module: the reorders between abstract layouts, an array of dictionaries
`{source = "l0", target = "l1", cost = 2.0e-3}`; those that are not listed do not exist."""
STRIDES = "braid.strides"
"""On a group or its call: `array<i64>` of the strides of each operand, then of each result, in
elements along the dims of storage; unit for a tensor on its own."""
BOXES = "braid.boxes"
"""On ops that concatenate or pad tensors: `array<i64: operand, offset>` for each operand that lies
in the memory of the result, from byte `offset` on. It is not copied there."""
VIEW_OFFSET = "braid.view_offset"
"""On a slice: its result is the memory of its operand, from this byte on."""
OVERLAP = "braid.overlap"
"""On a group, its call or its kernel: the number of the operand that may begin where the memory of
the result does. The kernel has read every element of it before it overwrites the element."""

# ---- Order and concurrency: search-order, assign-inter-op-streams, select-splits ----

ORDER = "braid.order"
"""One `array<i64>` per block: the present positions of its ops, without the terminator."""
KEY_NODE = "braid.key_node"
"""A unit attribute on ops that are on every path through their block."""
INTER_OP_STREAMS = "braid.inter_op_streams"
"""On a function: how many streams it has."""
INTER_OP_STREAM = "braid.inter_op_stream"
"""On a group or its call: the stream that runs it, counted from 0."""
SPLIT = "braid.split"
"""`array<i64>`: into how many parts each dim of the result is split; entries beyond its rank
are for the reduced dims, in the order of the op's structure."""

# ---- Properties of kernels: outline-kernels and code generation ----

SCHEDULE = "braid.schedule"
"""On a group or its kernel: by which family, and with which schedule, the kernel is made."""
GRID = "braid.grid"
"""On a kernel's function: how many independent iterations it has."""
WORKERS = "braid.workers"
"""On a kernel's function: the most parts of its grid that may run at once, where it has scratch:
each part has its own."""
BARRIERS = "braid.barriers"
"""`array<i64>` of iterations of a kernel's grid that wait for all earlier ones."""
IN_PLACE = "braid.in_place"
"""On a kernel's function: pairs (operand, result), one `array<i64>` each."""
SCRATCH_BYTES = "braid.scratch_bytes"
"""On a kernel's function: bytes of scratch that a call needs."""
STATUS = "braid.status"
"""On a kernel's function: the symbol of the function that tells whether it has failed; see
`KernelNeeds`."""

STREAMS = "braid.streams"
"""On a function: the streams that a chip runs for it, each with text, seconds and expected
executions."""
STREAM = "braid.stream"
"""On a group and its kernel: the stream that computes it on a chip; see `StreamedGroup`."""

# ---- Where values are: plan-memory ----

MEMORY = "braid.memory"
"""On a call: the memory space of its results, where a `braid.copy` became a kernel."""
BUFFERS = "braid.buffers"
"""On an op: the buffer of each of its results."""
CARRIED_BUFFERS = "braid.carried_buffers"
"""On a loop: the buffer of each value that it carries."""
STAGING_BUFFERS = "braid.staging_buffers"
"""On a terminator: by operand, the buffer through which it is copied to where it is carried."""
SCRATCH_BUFFER = "braid.scratch_buffer"
"""On a call: the buffer of its scratch."""
ARENA_BYTES = "braid.arena_bytes"
"""On a function: bytes of its arena."""
OPEN_BUFFERS = "braid.open_buffers"
"""On a function of open sizes: the bytes of each buffer of its arena, `#braid.sizes`."""
OPEN_LIFETIMES = "braid.open_lifetimes"
"""On such a function: `array<i64>` of the first and the last step at which each is needed."""
KERNEL_SIZES = "braid.kernel_sizes"
"""On a kernel's function: the sizes whose values it takes as arguments, `#braid.sizes`."""
ARENA_BOUND = "braid.arena_bound"
"""On a function: bytes that no plan of this order can go below."""
ARENAS = "braid.arenas"
"""On a function: bytes of its arenas in other memories, by memory."""
WEIGHTS_BYTES = "braid.weights_bytes"
"""On a function: bytes of the section of weights; of the device's own where it has a device."""
WEIGHTS_OFFSET = "braid.weights_offset"
"""On a function with a device: where the weights of the device begin in the section."""
EXPANDED_BYTES = "braid.expanded_bytes"
"""On a function: bytes of the weights that are expanded when the model is loaded."""
STORED_BUFFER = "braid.stored_buffer"
"""On a constant or parameter in the space `expanded`: where it is stored in the weights, before it
is expanded."""
STORED_TYPE = "braid.stored_type"
"""Beside `braid.stored_buffer`: the element type in which it is stored, if that differs."""


@cache
def known_names() -> frozenset[str]:
    """Return all names of the namespace; any other name in it is a mistake."""
    names = (value for value in globals().values() if isinstance(value, str))
    return frozenset(name for name in names if name.startswith(NAMESPACE)) - {NAMESPACE}
