"""Designs: stages that are joined by channels of known depth."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr, i64
from xdsl.ir import (
    Attribute,
    Block,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator
from xdsl.utils.exceptions import VerifyException

from braid.support.errors import BraidError


@irdl_attr_definition
class StreamType(ParametrizedAttribute, TypeAttribute):
    """Beats of `lanes` integers each, handed on in order by valid and ready.

    A tensor `[N, C, H, W]` is N · H · W beats of C lanes, in the order of its pixels; `[M, C]` is M
    beats.

    ```mlir
    !braid_hls.stream<8 x ui8>
    ```
    """

    name = "braid_hls.stream"

    lanes: IntAttr = param_def()
    element: IntegerType = param_def()

    @staticmethod
    def of(lanes: int, element: IntegerType) -> "StreamType":
        """Return the type of beats of `lanes` lanes."""
        return StreamType(IntAttr(lanes), element)

    @property
    def bits(self) -> int:
        """Counts are per beat."""
        return self.lanes.data * self.element.width.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse `<8 x ui8>`."""
        with parser.in_angle_brackets():
            lanes = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_keyword("x")
            return [IntAttr(lanes), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<8 x ui8>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.lanes.data} x ")
            printer.print_attribute(self.element)

    def verify(self) -> None:
        """Raise VerifyException for a stream without lanes."""
        if self.lanes.data < 1:
            raise VerifyException(f"a stream has {self.lanes.data} lanes, expected at least 1")


@irdl_op_definition
class ChannelOp(IRDLOperation):
    """A first-in first-out buffer of `depth` beats, with one writer and one reader.

    A stage reserves a slot in it when it begins an output, and the reader frees it.
    Fails verification for another type than the operand's, a depth below 1, and several readers.

    ```mlir
    %b = braid_hls.channel %a {depth = 12 : i64}
        : (!braid_hls.stream<8 x ui8>) -> !braid_hls.stream<8 x ui8>
    ```
    """

    name = "braid_hls.channel"

    stream = operand_def(StreamType)
    depth = attr_def(IntegerAttr[IntegerType])
    output = result_def(StreamType)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, stream: SSAValue, depth: int) -> None:
        super().__init__(
            operands=[stream],
            result_types=[stream.type],
            attributes={"depth": IntegerAttr(depth, i64)},
        )

    def verify_(self) -> None:
        """See the class."""
        if self.stream.type != self.output.type:
            raise VerifyException(f"{self.stream.type} goes in and {self.output.type} comes out")
        if self.depth.value.data < 1:
            raise VerifyException(f"depth is {self.depth.value.data}, expected at least 1")
        readers = len(tuple(self.output.uses))
        if readers > 1:
            raise VerifyException(f"{readers} readers, expected one; give each its own channel")


@irdl_op_definition
class OutputOp(IRDLOperation):
    """Ends a design: its operands are the streams that leave it.

    ```mlir
    braid_hls.output %y : !braid_hls.stream<8 x ui8>
    ```
    """

    name = "braid_hls.output"

    streams = var_operand_def(StreamType)

    traits = traits_def(IsTerminator())
    assembly_format = "$streams attr-dict `:` type($streams)"

    def __init__(self, streams: Sequence[SSAValue]) -> None:
        super().__init__(operands=[streams])


@irdl_op_definition
class DesignOp(IRDLOperation):
    """A graph of stages and channels; its arguments are the streams that come in.

    Stages read channels alone (and `braid_hls.weights`, which have a buffer of their own), and
    results leave through channels, so that each side may wait. Fails verification where one is read
    otherwise, or the body does not end in an output.

    ```mlir
    braid_hls.design "add_one" {
    ^bb0(%x: !braid_hls.stream<1 x i8>):
      %c = braid_hls.channel %x {depth = 2 : i64}
          : (!braid_hls.stream<1 x i8>) -> !braid_hls.stream<1 x i8>
      braid_hls.output %c : !braid_hls.stream<1 x i8>
    }
    ```
    """

    name = "braid_hls.design"

    sym_name = attr_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove())
    assembly_format = "$sym_name attr-dict-with-keyword $body"

    def __init__(self, name: str, body: Block) -> None:
        super().__init__(attributes={"sym_name": StringAttr(name)}, regions=[Region(body)])

    @property
    def output(self) -> OutputOp:
        """The terminator."""
        last = self.body.block.last_op
        assert isinstance(last, OutputOp)
        return last

    def verify_(self) -> None:
        """See the class."""
        block = self.body.block
        if not isinstance(block.last_op, OutputOp):
            raise VerifyException("the body of a design must end in braid_hls.output")
        for op in block.ops:
            if isinstance(op, ChannelOp):
                continue
            for value in op.operands:
                if not isinstance(value.owner, ChannelOp) and not _is_memory(value):
                    raise VerifyException(f"{op.name} reads a stream that is not a channel's")


def _is_memory(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "braid_hls.weights"


def only_design(module: ModuleOp) -> DesignOp:
    """Return the design of a module. Raises BraidError unless there is exactly one."""
    designs = [design for design in module.ops if isinstance(design, DesignOp)]
    if len(designs) != 1:
        raise BraidError(
            f"{len(designs)} designs in the module, expected one",
            hint="'convert-braid-to-hls' makes one of a function",
        )
    return designs[0]


def stream_of(value: SSAValue) -> StreamType:
    """Return the type of a value that is a stream."""
    return cast(StreamType, value.type)
