"""Stages: loop nests over the pixels of a tensor, with one iteration a cycle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    opt_attr_def,
    opt_operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid_hls.body import (
    AccumulateOp,
    ScheduledOp,
    YieldOp,
    bits_of,
    lanes_of,
    lanes_type,
)
from braid.dialects.braid_hls.design import StreamType, stream_of

WINDOW_START = 2
"""The cycle of an iteration in which its window is there: pixel and line buffers are read first."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Loops:
    """The loop nest of a stage; pairs are (rows, columns).

    Position p of an image of `image` pixels takes pixel p, as long as there is one. If the last
    pixel of an output's window is at p, `folds` = (groups of channels, parts of a sum) iterations
    compute it, the parts innermost; any other position is one iteration. `over_image`: each
    position is computed in these folds, its window is one pixel, and the only output combines all
    positions.
    """

    image: Pair
    window: Pair
    strides: Pair
    dilations: Pair
    pad_low: Pair
    outputs: Pair
    folds: Pair
    over_image: bool = False

    @property
    def reach(self) -> Pair:
        """Rows and columns from the first to the last pixel of a window."""
        rows, columns = ((w - 1) * d for w, d in zip(self.window, self.dilations, strict=True))
        return rows, columns

    def end_of(self, row: int, column: int) -> int:
        """Return the position of the last pixel of an output's window, maybe after the image."""
        y = row * self.strides[0] - self.pad_low[0] + self.reach[0]
        x = column * self.strides[1] - self.pad_low[1] + self.reach[1]
        return y * self.image[1] + x

    @property
    def pixels(self) -> int:
        """Beats that are read for one image."""
        return self.image[0] * self.image[1]

    @property
    def positions(self) -> int:
        """Counts are for one image: all pixels are read, and all outputs written."""
        if self.over_image:
            return self.pixels
        last = self.end_of(self.outputs[0] - 1, self.outputs[1] - 1)
        return max(self.pixels, last + 1)

    @property
    def iterations(self) -> int:
        """Counts are per image."""
        if self.over_image:
            return self.pixels * self.folds[0] * self.folds[1]
        outputs = self.outputs[0] * self.outputs[1]
        return self.positions + outputs * (self.folds[0] * self.folds[1] - 1)

    def folded(self, folds: Pair) -> "Loops":
        """Return the same loops in other folds."""
        return replace(self, folds=folds)

    def fault(self) -> str:
        """Return why windows do not end in the order of their outputs; empty where they do."""
        if self.over_image and (self.window, self.outputs) != ((1, 1), (1, 1)):
            return f"windows of {self.window} and outputs of {self.outputs} over an image"
        for dim, name in enumerate(("rows", "columns")):
            if not 0 <= self.pad_low[dim] <= self.reach[dim]:
                return f"{self.pad_low[dim]} {name} of padding before windows of {self.window}"
        if self.outputs[0] > 1 and self.end_of(0, self.outputs[1] - 1) >= self.end_of(1, 0):
            return f"padding makes rows of {self.outputs[1]} outputs longer than the image's"
        return ""


_PAIRS = ("image", "window", "strides", "dilations", "pad_low", "outputs", "folds")


@irdl_op_definition
class StageOp(IRDLOperation):
    """A loop nest that reads a beat of each stream per pixel and writes one per output.

    The body has a window of each stream as its arguments: pixels by rows, each with its lanes, and
    `pad_value` outside of the image; see `Loops` for the other attributes. An iteration begins in
    each cycle if its operands have arrived and its results have slots in all output channels; the
    results arrive `latency` cycles later. So an output takes `ii` cycles, one for each fold.
    `unroll` = (channels, terms of each) is the work of an iteration, which `select-hls-schedule`
    decides and `apply-hls-schedule` carries out. Fails verification where ops begin before their
    operands are there, several streams have windows of more than a pixel, lanes do not fit, or
    `latency` and `ii` are not those of the body.

    ```mlir
    %y = braid_hls.stage(%x) {label = "relu", image = array<i64: 4, 4>,
        window = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pad_low = array<i64: 0, 0>, outputs = array<i64: 4, 4>, folds = array<i64: 1, 1>,
        pad_value = 0 : i64, ii = 1 : i64, latency = 3 : i64}
        : (!braid_hls.stream<1 x i8>) -> !braid_hls.stream<1 x i8> {
    ^bb0(%w: vector<1xi8>):
      %0 = braid_hls.table {values = dense<0> : tensor<1x1xi64>, by = "none",
          start = 2 : i64, latency = 0 : i64} : vector<1xi1>
      %1 = braid_hls.compute %w, %0 {kind = "maximum", start = 2 : i64, latency = 1 : i64}
          : (vector<1xi8>, vector<1xi1>) -> vector<1xi8>
      braid_hls.yield %1 : vector<1xi8>
    }
    ```
    """

    name = "braid_hls.stage"

    inputs = var_operand_def(StreamType)
    weights = opt_operand_def(StreamType)
    label = attr_def(StringAttr)
    image = attr_def(DenseArrayBase[IntegerType])
    window = attr_def(DenseArrayBase[IntegerType])
    strides = attr_def(DenseArrayBase[IntegerType])
    dilations = attr_def(DenseArrayBase[IntegerType])
    pad_low = attr_def(DenseArrayBase[IntegerType])
    outputs = attr_def(DenseArrayBase[IntegerType])
    folds = attr_def(DenseArrayBase[IntegerType])
    pad_value = attr_def(IntegerAttr[IntegerType])
    ii = attr_def(IntegerAttr[IntegerType])
    latency = attr_def(IntegerAttr[IntegerType])
    over_image = opt_attr_def(UnitAttr)
    unroll = opt_attr_def(DenseArrayBase[IntegerType])
    memory_latency = opt_attr_def(IntegerAttr[IntegerType])
    output = result_def(StreamType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove())
    irdl_options = (AttrSizedOperandSegments(),)
    assembly_format = (
        "`(` $inputs `)` (`weights` $weights^ `:` type($weights))? attr-dict "
        "`:` functional-type($inputs, $output) $body"
    )

    def __init__(
        self,
        label: str,
        inputs: Sequence[SSAValue],
        output: StreamType,
        loops: Loops,
        pad_value: int,
        body: Block,
        weights: SSAValue | None = None,
    ) -> None:
        attributes: dict[str, Attribute] = {
            name: DenseArrayBase.from_list(i64, getattr(loops, name)) for name in _PAIRS
        }
        attributes |= {
            "label": StringAttr(label),
            "pad_value": IntegerAttr(pad_value, i64),
            "ii": IntegerAttr(loops.folds[0] * loops.folds[1], i64),
            "latency": IntegerAttr(ready_cycle(_yielded(body)), i64),
        }
        if loops.over_image:
            attributes["over_image"] = UnitAttr()
        super().__init__(
            operands=[inputs, weights],
            result_types=[output],
            attributes=attributes,
            regions=[Region(body)],
        )

    @property
    def loops(self) -> Loops:
        """The loop nest."""
        pairs = (tuple(getattr(self, name).get_values()) for name in _PAIRS)
        return Loops(*pairs, over_image=self.over_image is not None)

    @property
    def iterations(self) -> int:
        """Cycles from image to image."""
        return self.loops.iterations

    @property
    def windows(self) -> Sequence[SSAValue]:
        """The arguments of the body that are windows, one for each of `inputs`."""
        return self.body.block.args[: len(self.inputs)]

    @property
    def value(self) -> SSAValue:
        """The value that the body yields."""
        return _yielded(self.body.block)

    def verify_(self) -> None:
        """See the class."""
        for name in _PAIRS:
            if len(getattr(self, name)) != 2:
                raise VerifyException(f"{name} has {len(getattr(self, name))} entries, expected 2")
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("the body of a stage must end in braid_hls.yield")
        loops = self.loops
        ii, folds = self.ii.value.data, loops.folds[0] * loops.folds[1]
        if ii != folds:
            raise VerifyException(f"ii is {ii}, but an output has {folds} folds")
        if self.unroll is not None and len(self.unroll) != 2:
            raise VerifyException(f"unroll has {len(self.unroll)} entries, expected 2")
        if fault := loops.fault():
            raise VerifyException(fault)
        self._verify_lanes(loops)
        for op in self.body.block.ops:
            _verify_order(op)
        accumulates = any(isinstance(op, AccumulateOp) for op in self.body.block.ops)
        if accumulates != (loops.over_image or loops.folds[1] > 1):
            raise VerifyException(
                f"a body {'with' if accumulates else 'without'} an accumulate, in "
                f"{loops.folds[1]} parts{' over the image' * loops.over_image}"
            )
        latency, ready = self.latency.value.data, ready_cycle(self.value)
        if latency != ready:
            raise VerifyException(f"latency is {latency}, but the result is there in cycle {ready}")

    def _verify_lanes(self, loops: Loops) -> None:
        arguments = self.windows
        if not self.inputs or len(self.body.block.args) != len(self.operands):
            raise VerifyException(
                f"{len(self.body.block.args)} arguments of {len(self.operands)} streams"
            )
        if self.weights is not None:
            kind, last = stream_of(self.weights), self.body.block.args[-1]
            if last.type != lanes_type(kind.lanes.data, kind.element.width.data):
                raise VerifyException(f"weights of {kind} are {last.type} in the body")
        taps = loops.window[0] * loops.window[1]
        if taps > 1 and len(arguments) > 1:
            raise VerifyException("several streams with windows of more than a pixel")
        for stream, argument in zip(self.inputs, arguments, strict=True):
            lanes = stream_of(stream).lanes.data * taps
            kind, found = argument.type, str(argument.type)
            if not isinstance(kind, VectorType) or lanes_of(argument) != lanes:
                raise VerifyException(f"a window is {found}, expected {lanes} lanes")
            if bits_of(argument) < window_bits(stream_of(stream).element):
                raise VerifyException(f"a window of {stream.type} is {found}")
        output, group = stream_of(self.output), lanes_of(self.value)
        if group * loops.folds[0] != output.lanes.data:
            raise VerifyException(
                f"{loops.folds[0]} groups of {group} lanes make no beat of {output.lanes.data}"
            )


def window_bits(element: IntegerType) -> int:
    """Return the bits of an element of a stream as a signed number."""
    return element.width.data + (element.signedness.data == Signedness.UNSIGNED)


def ready_cycle(value: SSAValue) -> int:
    """Return the cycle of an iteration in which a value is available."""
    return value.owner.ready if isinstance(value.owner, ScheduledOp) else WINDOW_START


def _yielded(body: Block) -> SSAValue:
    last = body.last_op
    assert isinstance(last, YieldOp)
    return last.value


def _verify_order(op: Operation) -> None:
    if not isinstance(op, ScheduledOp):
        if isinstance(op, YieldOp):
            return
        raise VerifyException(f"{op.name} in a stage, which has ops with a start alone")
    for value in op.operands:
        if op.begins < ready_cycle(value):
            raise VerifyException(
                f"{op.name} begins in cycle {op.begins}, but an operand is there in cycle "
                f"{ready_cycle(value)}"
            )
