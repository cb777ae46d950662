"""Primitives of oneDNN: what each computes as data, and the calls that make it.

Source of the interface and of its numbers: oneDNN 3, `dnnl.h` and `dnnl_types.h`.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from braid.lowering.cpu.library.calls import Argument, Call, Out, Size, Slot

ANY = "any"
"""The tag of a tensor whose layout is the library's choice."""

_CPU, _DEFAULT_STREAM, _F32, _INFERENCE, _TAG_ANY, _USER_SCRATCHPAD = 1, 1, 3, 96, 1, 1
_CONVOLUTION_DIRECT, _SOFTMAX_ACCURATE, _SCALE_AND_SHIFT = 1, 0x30000, 2 | 4
_SCRATCHPAD_MD = 136
WEIGHTS_MD = 131

SOURCE_ARGUMENT, RESULT_ARGUMENT, SCRATCHPAD_ARGUMENT = 1, 17, 80
_WEIGHT_ARGUMENTS = {"convolution": (33,), "matmul": (33,), "layer_norm": (51, 52)}


class Kind(StrEnum):
    """A kind of primitive of oneDNN, by what it computes."""

    CONVOLUTION = "convolution"
    MATMUL = "matmul"
    MAX_POOL = "max_pool"
    AVERAGE_POOL = "average_pool"
    SOFTMAX = "softmax"
    LAYER_NORM = "layer_norm"


_POOL_ALGORITHMS = {Kind.MAX_POOL: 0x1FF, Kind.AVERAGE_POOL: 0x2FF}

ELTWISE = {
    "relu": 0x20,
    "tanh": 0x21,
    "abs": 0x24,
    "sqrt": 0x25,
    "linear": 0x26,
    "sigmoid": 0x29,
    "exp": 0x2A,
    "swish": 0x2C,
    "clip": 0x2E,
    "gelu": 0x31,
    "hard_swish": 0x34,
}
"""Functions of one number, by their names in `dnnl_alg_kind_t`."""

BINARY = {"add": 0, "mul": 1, "maximum": 2, "minimum": 3, "div": 4, "sub": 5}
"""Functions of two tensors by names of braid's elementwise ops, numbered as by oneDNN."""

_BINARY_BASE = 0x1FFF0


@dataclass(frozen=True)
class Tensor:
    """A tensor of f32 and how it is stored, in oneDNN's tags, or `ANY`."""

    shape: tuple[int, ...]
    tag: str


@dataclass(frozen=True)
class PostOp:
    """An elementwise function of the value so far, and of `tensor` if there is one."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0
    tensor: Tensor | None = None


@dataclass(frozen=True)
class Primitive:
    """A primitive. `sizes` are the window, its strides and dilations; `numbers` by kind.

    For softmax the dim, for layer normalization the epsilon.
    """

    kind: Kind
    source: Tensor
    weights: tuple[Tensor, ...]
    result: Tensor
    post_ops: tuple[PostOp, ...] = ()
    window: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    number: float = 0.0


_NONE = Slot(-1)
"""The slot before a call has filled one."""


@dataclass
class Program:
    """Calls that make a primitive, with the slots of what running it needs.

    `arguments` are pairs of oneDNN's number of an argument and the slot of its descriptor: the
    source, the weights, tensors of post-ops in their order, the result, the scratchpad.
    """

    calls: list[Call] = field(default_factory=list[Call])
    slots: int = 0
    arguments: list[tuple[int, Slot]] = field(default_factory=list[tuple[int, Slot]])
    engine: Slot = _NONE
    stream: Slot = _NONE
    description: Slot = _NONE
    primitive: Slot = _NONE

    def make(self, function: str, *arguments: Argument) -> Slot:
        """Add a call that fills a slot, which is its first argument."""
        slot = self.slot()
        self.call(function, Out(slot), *arguments)
        return slot

    def call(self, function: str, *arguments: Argument) -> None:
        """Add a call that returns a status."""
        self.calls.append(Call(function, arguments))

    def slot(self) -> Slot:
        """Return a further one."""
        self.slots += 1
        return Slot(self.slots - 1)

    def described(self, tensor: Tensor) -> Slot:
        """Return the descriptor of a tensor."""
        rank, shape = len(tensor.shape), _dims(tensor.shape)
        if tensor.tag == ANY:
            return self.make("dnnl_memory_desc_create_with_tag", rank, shape, _F32, _TAG_ANY)
        tag = tensor.tag.encode() + b"\0"
        create = "dnnl_memory_desc_create_with_string_tag"
        return self.make(create, rank, shape, _F32, tag)


def description_of(primitive: Primitive) -> Program:
    """Return the calls up to the primitive's descriptor, with which the library can be queried."""
    program = Program()
    program.engine = program.make("dnnl_engine_create", _CPU, Size(0))
    source = program.described(primitive.source)
    weights = [program.described(each) for each in primitive.weights]
    result = program.described(primitive.result)
    attributes = program.make("dnnl_primitive_attr_create")
    program.call("dnnl_primitive_attr_set_scratchpad_mode", attributes, _USER_SCRATCHPAD)
    program.arguments.append((SOURCE_ARGUMENT, source))
    numbers = _WEIGHT_ARGUMENTS.get(primitive.kind, ())
    program.arguments += zip(numbers, weights, strict=True)
    _add_post_ops(program, primitive.post_ops, attributes)
    program.arguments.append((RESULT_ARGUMENT, result))
    program.description = _described(program, primitive, (source, *weights, result), attributes)
    return program


def program_of(primitive: Primitive) -> Program:
    """Return the calls that make a primitive that can run."""
    program = description_of(primitive)
    program.stream = program.make("dnnl_stream_create", program.engine, _DEFAULT_STREAM)
    program.primitive = program.make("dnnl_primitive_create", program.description)
    scratchpad = program.slot()
    query = (program.description, _SCRATCHPAD_MD, 0)
    program.calls.append(Call("dnnl_primitive_desc_query_md", query, scratchpad))
    program.arguments.append((SCRATCHPAD_ARGUMENT, scratchpad))
    return program


def _add_post_ops(program: Program, post_ops: Sequence[PostOp], attributes: Slot) -> None:
    if not post_ops:
        return
    chain = program.make("dnnl_post_ops_create")
    for number, each in enumerate(post_ops):
        if each.tensor is None:
            append, kind = "dnnl_post_ops_append_eltwise", ELTWISE[each.name]
            program.call(append, chain, kind, each.alpha, each.beta)
        else:
            tensor = program.described(each.tensor)
            kind = _BINARY_BASE + BINARY[each.name]
            program.call("dnnl_post_ops_append_binary", chain, kind, tensor)
            program.arguments.append((0x8000 * (number + 1) | 2, tensor))
    program.call("dnnl_primitive_attr_set_post_ops", attributes, chain)


def _described(
    program: Program, primitive: Primitive, tensors: Sequence[Slot], attributes: Slot
) -> Slot:
    engine, kind = program.engine, primitive.kind
    source, *weights, result = tensors
    nothing = _dims((0,) * len(primitive.strides))
    strides, dilations = _dims(primitive.strides), _dims([d - 1 for d in primitive.dilations])
    match kind:
        case Kind.CONVOLUTION:
            create = "dnnl_convolution_forward_primitive_desc_create"
            head = (engine, _INFERENCE, _CONVOLUTION_DIRECT, source, weights[0], None, result)
            return program.make(create, *head, strides, dilations, nothing, nothing, attributes)
        case Kind.MATMUL:
            create = "dnnl_matmul_primitive_desc_create"
            return program.make(create, engine, source, weights[0], None, result, attributes)
        case Kind.MAX_POOL | Kind.AVERAGE_POOL:
            create = "dnnl_pooling_forward_primitive_desc_create"
            head = (engine, _INFERENCE, _POOL_ALGORITHMS[kind], source, result, strides)
            window = _dims(primitive.window)
            return program.make(create, *head, window, dilations, nothing, nothing, attributes)
        case Kind.SOFTMAX:
            create = "dnnl_softmax_forward_primitive_desc_create"
            head = (engine, _INFERENCE, _SOFTMAX_ACCURATE, source, result)
            return program.make(create, *head, int(primitive.number), attributes)
        case Kind.LAYER_NORM:
            create = "dnnl_layer_normalization_forward_primitive_desc_create"
            head = (engine, _INFERENCE, source, result, None, float(primitive.number))
            return program.make(create, *head, _SCALE_AND_SHIFT, attributes)


def _dims(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)
