"""Modules in generic form, which upstream MLIR reads for every dialect.

The text equals that of xDSL's printer, but is made several times as fast: this printer knows a
single form of ops, and prints each attribute once.
"""

from collections.abc import Iterable, Mapping
from io import StringIO
from itertools import count

from xdsl.dialects.builtin import FunctionType, ModuleOp, UnitAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer


def module_text(module: ModuleOp) -> str:
    """Return the module in generic form; values and blocks have numbers for names."""
    writer = _Writer()
    writer.op(module, "\n")
    return "".join(writer.pieces)


class _Writer:
    """Collects the pieces of the text."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._values: dict[SSAValue, str] = {}
        self._blocks: dict[Block, str] = {}
        self._numbers = count()
        self._texts: dict[Attribute, str] = {}
        self._known: dict[int, str] = {}  # by identity: most are shared, and hashes are deep

    def op(self, op: Operation, line: str) -> None:
        """Write an op; `line` begins each line at its depth of nesting."""
        write = self.pieces.append
        if op.results:
            write(f"{', '.join(map(self._value, op.results))} = ")
        attributes: Mapping[str, Attribute] = op.attributes
        name, operands = op.name, tuple(op.operands)
        if name == UnregisteredOp.name:
            assert isinstance(op, UnregisteredOp)
            name = op.op_name.data
            attributes = {k: v for k, v in attributes.items() if v is not op.op_name}
        write(f'"{name}"({", ".join(map(self._value, operands))})')
        if op.successors:
            write(f" [{', '.join(f'^{self._blocks[block]}' for block in op.successors)}]")
        if op.properties:
            write(f" <{self._dictionary(op.properties)}>")
        for index, region in enumerate(op.regions):
            write(", " if index else " (")
            self._region(region, line)
        if op.regions:
            write(")")
        if attributes:
            write(f" {self._dictionary(attributes)}")
        types = ", ".join([self._text(operand.type) for operand in operands])
        write(f" : ({types}) -> {self._results(op)}")

    def _region(self, region: Region, line: str) -> None:
        for index, block in enumerate(region.blocks):
            self._blocks[block] = f"bb{index}"
        write, inner = self.pieces.append, line + "  "
        write("{")
        for index, block in enumerate(region.blocks):
            if index or block.args or not block.ops:
                write(f"{line}^{self._blocks[block]}")
                if block.args:
                    arguments = (f"{self._value(a)}: {self._text(a.type)}" for a in block.args)
                    write(f"({', '.join(arguments)})")
                write(":")
            for op in block.ops:
                write(inner)
                self.op(op, inner)
        write(line + "}")

    def _value(self, value: SSAValue) -> str:
        name = self._values.get(value)
        if name is None:
            name = self._values[value] = f"%{next(self._numbers)}"
        return name

    def _results(self, op: Operation) -> str:
        types = [self._text(result.type) for result in op.results]
        single = len(types) == 1 and type(op.results[0].type) is not FunctionType
        return types[0] if single else f"({', '.join(types)})"

    def _dictionary(self, attributes: Mapping[str, Attribute]) -> str:
        return f"{{{', '.join(self._entries(attributes.items()))}}}"

    def _entries(self, attributes: Iterable[tuple[str, Attribute]]) -> Iterable[str]:
        for key, attribute in attributes:
            name = key if key.isidentifier() and key.isascii() else _literal(key)
            if type(attribute) is UnitAttr:
                yield name
            else:
                yield f"{name} = {self._text(attribute)}"

    def _text(self, attribute: Attribute) -> str:
        """Return the text of an attribute, which the module keeps alive."""
        text = self._known.get(id(attribute))
        if text is None:
            text = self._texts.get(attribute)
            if text is None:
                stream = StringIO()
                Printer(stream, print_generic_format=True).print_attribute(attribute)
                text = self._texts[attribute] = stream.getvalue()
            self._known[id(attribute)] = text
        return text


def _literal(text: str) -> str:
    stream = StringIO()
    Printer(stream).print_string_literal(text)
    return stream.getvalue()
