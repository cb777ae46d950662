"""The buffer of a tensor, decided by `plan-memory`."""

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

SPACES = ("arena", "weights", "input", "output")
"""What a buffer's offset counts from. `input` and `output` count whole tensors, not bytes."""


@irdl_attr_definition
class BufferAttr(ParametrizedAttribute):
    """Where a tensor lives at run time: bytes from the start of the arena or of the weights, or
    the number of a model input or output.

    ```mlir
    #braid.buffer<"arena", 4096>
    ```
    """

    name = "braid.buffer"

    space: StringAttr = param_def()
    offset: IntAttr = param_def()

    @staticmethod
    def of(space: str, offset: int) -> "BufferAttr":
        """The buffer at `offset` of `space`."""
        return BufferAttr(StringAttr(space), IntAttr(offset))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Reads `<"space", offset>`."""
        with parser.in_angle_brackets():
            space = parser.parse_str_literal("memory space")
            parser.parse_punctuation(",")
            return [StringAttr(space), IntAttr(parser.parse_integer(allow_negative=False))]

    def print_parameters(self, printer: Printer) -> None:
        """Prints `<"space", offset>`."""
        with printer.in_angle_brackets():
            printer.print_string(f'"{self.space.data}", {self.offset.data}')

    def verify(self) -> None:
        """The space must be known."""
        if self.space.data not in SPACES:
            raise VerifyException(
                f"the memory space is '{self.space.data}', expected one of {list(SPACES)}"
            )
