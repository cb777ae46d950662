"""The buffer of a tensor, decided by `plan-memory`, and which ones kernels may share."""

import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntAttr, IntegerType, StringAttr, i64
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import IN_PLACE

SPACES = (
    "arena",
    "arena:MEMORY",
    "weights",
    "expanded",
    "input:N",
    "output:N",
    "output:N:aligned",
    "open:N",
)
"""The places that a buffer's offset counts from."""

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector. Arenas and weights begin at a multiple of it."""

_SPACE = re.compile(
    r"arena(:[\w.:-]+)?|weights|expanded|(input|output|open):\d+|output:\d+:aligned", re.ASCII
)


def aligned(bytes: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-bytes // ALIGNMENT) * ALIGNMENT


@irdl_attr_definition
class BufferAttr(ParametrizedAttribute):
    """The place of a tensor at run time: bytes from the start of a memory space.

    A space is the arena, the arena of another memory of the target (`arena:gpu.global`), the
    weights, the weights that loading expands, or an input or output of the model by its number
    (`output:0`). A caller aligns an output to its elements only; `output:0:aligned` is the first
    multiple of 64 bytes in it. Where sizes are open, `open:N` is a buffer in the arena that is
    placed for each run: the N-th of the function's `braid.open_buffers`.

    ```mlir
    #braid.buffer<"arena", 4096>
    ```
    """

    name = "braid.buffer"

    space: StringAttr = param_def()
    offset: IntAttr = param_def()

    @staticmethod
    def of(space: str, offset: int = 0) -> "BufferAttr":
        """Return the buffer at `offset` of `space`."""
        return BufferAttr(StringAttr(space), IntAttr(offset))

    @staticmethod
    def input(number: int) -> "BufferAttr":
        """Return the memory of a model's input."""
        return BufferAttr.of(f"input:{number}")

    @staticmethod
    def output(number: int) -> "BufferAttr":
        """Return the memory of a model's output."""
        return BufferAttr.of(f"output:{number}")

    @staticmethod
    def open(number: int) -> "BufferAttr":
        """Return a buffer of the arena whose place is found when the sizes are known."""
        return BufferAttr.of(f"open:{number}")

    @property
    def output_number(self) -> int | None:
        """The number of the output to which this memory belongs; None for other spaces."""
        kind, _, number = self.space.data.partition(":")
        return int(number.partition(":")[0]) if kind == "output" else None

    def aligned(self) -> "BufferAttr":
        """Return the same offset, counted from the first aligned address in an output."""
        return BufferAttr.of(f"output:{self.output_number}:aligned", self.offset.data)

    def after(self, offset: int) -> "BufferAttr":
        """Return the buffer that begins `offset` bytes into this one."""
        return BufferAttr.of(self.space.data, self.offset.data + offset)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<"space", offset>`."""
        with parser.in_angle_brackets():
            space = parser.parse_str_literal("memory space")
            parser.parse_punctuation(",")
            return [StringAttr(space), IntAttr(parser.parse_integer(allow_negative=False))]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<"space", offset>`."""
        with printer.in_angle_brackets():
            printer.print_string(f'"{self.space.data}", {self.offset.data}')

    def verify(self) -> None:
        """Check that the space is known."""
        if _SPACE.fullmatch(self.space.data) is None:
            raise VerifyException(
                f"the memory space is '{self.space.data}', expected one of {list(SPACES)}"
            )


def in_place_attribute(pairs: Sequence[tuple[int, int]]) -> ArrayAttr[DenseArrayBase[IntegerType]]:
    """Return the pairs as an attribute."""
    return ArrayAttr([DenseArrayBase.from_list(i64, list(pair)) for pair in pairs])


def in_place_pairs(kernel: Operation | None) -> list[tuple[int, int]]:
    """Return the pairs that `kernel` declares; none for one that is not in the module."""
    attribute = None if kernel is None else kernel.attributes.get(IN_PLACE)
    if attribute is None:
        return []
    pairs = cast("ArrayAttr[DenseArrayBase[IntegerType]]", attribute)
    return [cast("tuple[int, int]", pair.get_values()) for pair in pairs]
