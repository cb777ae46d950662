"""The fast paths read and print exactly as xDSL's parser and printer do."""

import re
from io import StringIO
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from braid.dialects.printing import module_text
from braid.frontends.mlir import MLIRSyntaxError, ParsedFile, parse_mlir
from braid.frontends.mlir import parser as parsing
from braid.frontends.mlir.repeated_ops import Line
from braid.tools.opt.files import split_chunks
from braid.universe import make_context

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.rglob("*.mlir"))


class PlainParser(parsing.LocatingParser):
    """The parser without its fast paths."""

    def _read_repeated_ops(self, block: Block) -> tuple[Line | None, int]:
        return None, self.pos

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        return Parser.parse_optional_dictionary_attr_dict(self)

    def parse_optional_type(self) -> TypeAttribute | None:
        return Parser.parse_optional_type(self)


def parse_plainly(context: Context, text: str, monkeypatch: pytest.MonkeyPatch) -> ParsedFile:
    with monkeypatch.context() as patch:
        patch.setattr(parsing, "LocatingParser", PlainParser)
        return parse_mlir(context, text, "m.mlir", line_offset=3)


def printed(module: ModuleOp) -> str:
    """Everything of a module, with the names of values and the locations."""
    stream = StringIO()
    Printer(stream, print_generic_format=True, print_debuginfo=True).print_op(module)
    return without_numbers(stream.getvalue())


def without_numbers(text: str) -> str:
    """Return the text without what makes keys of resources different in the process."""
    return re.sub(r"dense_resource<(\w+?)(_\d+)*>", r"dense_resource<\1>", text)


def assert_reads_alike(context: Context, text: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Compare both ways of reading `text`; return the printed module, if it is one."""
    try:
        expected = parse_plainly(context, text, monkeypatch).module
    except MLIRSyntaxError as error:
        with pytest.raises(MLIRSyntaxError) as caught:
            parse_mlir(context, text, "m.mlir", line_offset=3)
        assert str(caught.value) == str(error)
        return None
    actual = parse_mlir(context, text, "m.mlir", line_offset=3).module
    reference_text = printed(expected)
    assert printed(actual) == reference_text
    assert without_numbers(module_text(actual, generic=True, debuginfo=True)) == reference_text
    if "dense_resource<" in text:
        return reference_text  # attributes differ in keys
    for read, reference in zip(actual.walk(), expected.walk(), strict=True):
        assert type(read) is type(reference) or isinstance(read, UnregisteredOp)
        assert list(read.attributes.items()) == list(reference.attributes.items())
        assert list(read.properties.items()) == list(reference.properties.items())
    return reference_text


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_test_file_reads_as_by_xdsl(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = make_context(allow_unregistered=True)
    for chunk in split_chunks(file.read_text(encoding="utf-8")):
        text = assert_reads_alike(context, chunk.text, monkeypatch)
        if text is not None:
            # Twice in one file, so that every line is one that was read before; with locations.
            assert assert_reads_alike(context, f"{text}\n{text}\n", monkeypatch) is not None


@pytest.mark.parametrize(("first", "times"), [("%x", 1), ("%0", 2)])
def test_a_line_like_an_earlier_one_is_not_parsed(
    first: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An op with one value twice does not show which operand is which: the next one does."""
    parsed: list[str] = []
    parse_operation = parsing.LocatingParser.parse_operation

    def counted(parser: parsing.LocatingParser) -> Operation:
        op = parse_operation(parser)
        parsed.append(op.name)
        return op

    monkeypatch.setattr(parsing.LocatingParser, "parse_operation", counted)
    lines = "\n".join(
        f"%{i} = braid.add %{i - 1}, {first if i == 1 else '%x'} "
        f'{{braid.name = "n{i}"}} : '
        "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
        for i in range(1, 100)
    )
    text = f"func.func @f(%0: tensor<4xf32>, %x: tensor<4xf32>) {{\n{lines}\nfunc.return\n}}"
    parse_mlir(make_context(), text, "m.mlir")
    assert sorted(parsed) == [*["braid.add"] * times, "func.func", "func.return"]
