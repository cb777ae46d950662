"""From a function of integer ops to a design."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.locations import located_at
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid_hls.body import YieldOp, lanes_type
from braid.dialects.braid_hls.design import ChannelOp, DesignOp, OutputOp, StreamType, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Loops, Pair, StageOp, window_bits
from braid.lowering.fpga.convert.moves import (
    MOVES,
    in_rows,
    keeps_beats,
    order_of,
    root_of,
    source_of,
)
from braid.lowering.fpga.convert.products import Head, head_of, pointwise
from braid.lowering.fpga.convert.scalars import apply_scalar, type_limits
from braid.lowering.fpga.convert.shapes import pixels_of
from braid.lowering.fpga.convert.stage_trees import (
    HEADS,
    Ports,
    Trees,
    operands_of,
    ports_of,
    stage_trees,
)
from braid.lowering.fpga.convert.values import Array, BodyBuilder, Known, Lanes, Value
from braid.lowering.fpga.design.streams import places_under_way
from braid.solvers.hls.banks import fewest_passes
from braid.support.errors import UnsupportedError


@dataclass(frozen=True)
class Converted:
    """A design, and the values of the function at its ports."""

    design: DesignOp
    ports: Ports


def design_of(function: FuncOp, parameters: Mapping[str, Array]) -> Converted:
    """Return the design of a function whose weights are constants, or `parameters` by key.

    Its stages compute an output at once. Raises UnsupportedError naming what stages do not have.
    """
    trees, ports, plans = _planned(function, parameters)
    block = Block(arg_types=[stream_type(argument) for argument in ports.inputs])
    streams: dict[SSAValue, SSAValue] = dict(zip(ports.inputs, block.args, strict=True))
    for plan in plans:
        if isinstance(plan.value.owner, MOVES):
            streams[plan.value] = _moved(block, plan.value, streams[root_of(plan.value)])
            continue
        inputs = [_channel(block, streams[value]) for value in plan.inputs]
        stage = _stage(trees, plan, inputs)
        block.add_op(stage)
        streams[plan.value] = stage.output
    results = [streams[value] for value in ports.outputs]
    if not block.ops:
        results = [
            _copied(block, value, one) for value, one in zip(ports.outputs, results, strict=True)
        ]
    block.add_op(OutputOp([_channel(block, one) for one in results]))
    return Converted(DesignOp(function.sym_name.data, block), ports)


def check_stages(function: FuncOp, parameters: Mapping[str, Array]) -> None:
    """Raise as `design_of` for ops that stages do not have, without making those of windows."""
    trees, _, plans = _planned(function, parameters)
    for plan in plans:
        if plan.head is None and not isinstance(plan.value.owner, MOVES):
            block = Block(arg_types=[stream_type(value) for value in plan.inputs])
            inputs = [_channel(block, argument) for argument in block.args]
            _stage(trees, plan, inputs)


def _planned(
    function: FuncOp, parameters: Mapping[str, Array]
) -> tuple[Trees, Ports, list["_Plan"]]:
    ports = ports_of(function)
    trees = stage_trees(function, known_values(function, parameters), ports)
    plans: list[_Plan] = []
    for value in trees.streams:
        if value not in ports.inputs:
            with located_at(value.owner):
                plans.append(_plan(trees, value))
    return trees, ports, plans


def known_values(
    function: FuncOp, parameters: Mapping[str, Array], *, needs_all: bool = True
) -> dict[SSAValue, Array]:
    """Return all that depends on weights and constants alone.

    Raises UnsupportedError for a parameter without numbers, if it needs them all.
    """
    known: dict[SSAValue, Array] = {}
    for op in function.body.block.ops:
        if isinstance(op, ParameterOp) and op.key.data in parameters:
            known[op.results[0]] = parameters[op.key.data]
        elif isinstance(op, ParameterOp) and needs_all:
            raise UnsupportedError(
                f"parameter '{op.key.data}' without its numbers on an FPGA",
                hint="weights are part of a design: convert the model where they are",
            )
        elif isinstance(op, ParameterOp):
            continue
        elif isinstance(op, TensorOp) and all(operand in known for operand in op.operands):
            values = op.evaluate(*(known[operand] for operand in op.operands))
            known.update(zip(op.results, values, strict=True))
    return known


@dataclass(frozen=True)
class _Plan:
    """A stream that a stage writes."""

    value: SSAValue
    inputs: list[SSAValue]
    head: Head | None
    loops: Loops


def _plan(trees: Trees, value: SSAValue) -> _Plan:
    inputs, op = trees.inputs(value), trees.head(value)
    for each in (value, *inputs):
        type_limits(element_type_of(each))
    image, channels = pixels_of(value)
    if not inputs:
        raise UnsupportedError("a result on an FPGA that depends on no input")
    head = None if op is None else _head(trees, op)
    joins = isinstance(value.owner, (ConcatOp, *MOVES))
    for source in inputs if head is None and not joins else []:
        if pixels_of(source) != (image, channels):
            raise UnsupportedError(
                f"a tensor of shape {list(shape_of(source))} that is repeated to "
                f"{list(shape_of(value))} on an FPGA"
            )
    if head is not None and head.channels != channels:
        raise UnsupportedError(f"{head.channels} channels repeated to {channels} on an FPGA")
    loops = pointwise(image) if head is None else head.loops
    return _Plan(value, inputs, head, loops)


def _head(trees: Trees, op: Operation) -> Head:
    weights = None
    if isinstance(op, ConvOp | MatmulOp):
        if op.operands[1] not in trees.known:
            raise UnsupportedError(
                f"'{op.name}' with weights that are not known on an FPGA",
                hint="weights are part of a design; products of two inputs run elsewhere",
            )
        weights = trees.known[op.operands[1]].astype(np.int64)
        if isinstance(op, MatmulOp):
            weights = _moved_weights(op, weights)
    (source,) = operands_of(op.results[0])
    padded = op.operands[0].owner
    pad = int(op.padding_value) if isinstance(op, PoolOp) else 0
    pads: tuple[Pair, Pair] = ((0, 0), (0, 0))
    if isinstance(padded, PadOp):
        pads, pad = _padding(padded, op, pad)
    return head_of(op, weights, source, pads, pad)


def _moved_weights(op: MatmulOp, weights: Array) -> Array:
    """Return the rows of the weights in the order in which an image's elements come that are one
    row of the product.
    """
    value = op.operands[0]
    if shape_of(value)[0] != 1 or weights.ndim != 2:
        return weights
    return weights[np.argsort(in_rows(value))]


def _padding(op: PadOp, reader: Operation, pad: int) -> tuple[tuple[Pair, Pair], int]:
    """Return the rows and columns before and after, and the value in them."""
    low, high = op.low.get_values(), op.high.get_values()
    value = int(cast(IntegerAttr, op.value).value.data)
    is_plain = len(low) == 4 and not any((*low[:2], *high[:2])) and min(*low, *high) >= 0
    windows = reader.windows if isinstance(reader, ConvOp | PoolOp) else None
    if not is_plain or windows is None or (windows.is_padded and value != pad):
        raise UnsupportedError(
            f"padding of {list(low)} and {list(high)} in front of '{reader.name}' on an FPGA",
            hint="stages pad rows and columns, with one value",
        )
    return ((low[2], low[3]), (high[2], high[3])), value


def stream_type(value: SSAValue) -> StreamType:
    """Return the type of the stream of a tensor. Raises UnsupportedError if there is none."""
    kind = element_type_of(value)
    type_limits(kind)
    return StreamType.of(pixels_of(value)[1], cast(IntegerType, kind))


def _channel(block: Block, stream: SSAValue) -> SSAValue:
    """Return a channel with slots for the values in flight in its writer; see
    `select-channel-depths`.
    """
    channel = ChannelOp(stream, places_under_way(stream))
    block.add_op(channel)
    return channel.output


def _moved(block: Block, value: SSAValue, stream: SSAValue) -> SSAValue:
    """Return the stream of a tensor that has the numbers of another one in a different order.

    It is the same stream if beats stay the same, a separate stage if lanes move within beats, and
    else comes from a memory.
    """
    if keeps_beats(value):
        return stream
    order, kind = order_of(value), stream_type(value)
    lanes, given = kind.lanes.data, stream_of(stream).lanes.data
    stays = lanes == given and np.array_equal(order // lanes, np.arange(order.size) // lanes)
    within = (order % lanes).reshape(-1, lanes)
    channel = _channel(block, stream)
    if stays and bool((within == within[0]).all()):
        body = Block(arg_types=[lanes_type(lanes, window_bits(kind.element))])
        builder = BodyBuilder(1, 1)
        selected = builder.select(body.args[0], within[:1].reshape(1, 1, lanes))
        body.add_ops([*builder.ops, YieldOp(selected)])
        loops = pointwise(pixels_of(value)[0])
        made = StageOp("permute", [channel], kind, loops, 0, body)
    else:
        made = PermuteOp(channel, kind, order, fewest_passes(order, order.size // given, lanes, 1))
    block.add_op(made)
    return made.output


def _copied(block: Block, value: SSAValue, stream: SSAValue) -> SSAValue:
    """Return a stage that passes on beats: what computes nothing is a design all the same."""
    kind = stream_of(stream)
    body = Block(arg_types=[lanes_type(kind.lanes.data, window_bits(kind.element))])
    body.add_op(YieldOp(body.args[0]))
    loops = pointwise(pixels_of(value)[0])
    stage = StageOp("copy", [_channel(block, stream)], kind, loops, 0, body)
    block.add_op(stage)
    return stage.output


def _stage(trees: Trees, plan: _Plan, inputs: list[SSAValue]) -> StageOp:
    loops = plan.loops
    taps = loops.window[0] * loops.window[1]
    kinds = [stream_of(value) for value in inputs]
    body = Block(
        arg_types=[lanes_type(kind.lanes.data * taps, window_bits(kind.element)) for kind in kinds]
    )
    builder = BodyBuilder(*loops.folds, over_image=loops.over_image)
    expression = _Expression(trees, plan, builder, dict(zip(plan.inputs, body.args, strict=True)))
    value = expression.value(plan.value, is_root=True)
    assert isinstance(value, Lanes), "an expression reads a stream"
    body.add_ops(builder.ops)
    body.add_op(YieldOp(value.value))
    op = plan.value.owner if plan.head is None else plan.head.op
    is_named = isinstance(op, (*HEADS, ConcatOp))
    label = op.name.partition(".")[2] if is_named else "elementwise"
    pad = 0 if plan.head is None else plan.head.pad_value
    return StageOp(label, inputs, stream_type(plan.value), loops, pad, body)


@dataclass
class _Expression:
    """Builds the ops of a stream's expression."""

    trees: Trees
    plan: _Plan
    builder: BodyBuilder
    windows: Mapping[SSAValue, SSAValue]

    def value(self, value: SSAValue, *, is_root: bool = False) -> Value:
        """Return the lanes of a group of channels, or known numbers."""
        if value in self.trees.known:
            return self._known(value)
        if value in self.windows and not is_root:
            return self._pixel(value)
        op = value.owner
        if isinstance(op, ConcatOp):
            window = self.builder.join([self.windows[source] for source in operands_of(value)])
            return Lanes(window, type_limits(element_type_of(value)))
        if self.plan.head is not None and op is self.plan.head.op:
            with located_at(op):
                return self.plan.head.emit(self.builder, self.windows[self.plan.head.input])
        assert isinstance(op, ElementwiseOp) and not isinstance(op, HEADS)
        with located_at(op):
            operands = [self.value(source_of(operand, op)) for operand in op.operands]
            (stage,) = op.structure().stages
            return apply_scalar(self.builder, stage.body, operands)

    def _known(self, value: SSAValue) -> Known:
        shape = shape_of(value)
        if any(extent != 1 for dim, extent in enumerate(shape) if dim != 1):
            raise UnsupportedError(
                f"known numbers of shape {list(shape)} beside a stream on an FPGA",
                hint="stages have one number, or one for each channel",
            )
        return Known(self.trees.known[value].astype(np.int64).ravel())

    def _pixel(self, value: SSAValue) -> Lanes:
        groups = self.builder.groups
        _, channels = pixels_of(value)
        rows = np.arange(channels).reshape(groups, 1, channels // groups)
        selected = self.builder.select(self.windows[value], rows)
        return Lanes(selected, type_limits(element_type_of(value)))
