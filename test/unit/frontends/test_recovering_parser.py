"""The parser for editors goes on after an error, at the right place, whatever the text is."""

import random
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from braid.analysis.structure.verification import verify_module
from braid.frontends.mlir import parse_mlir
from braid.frontends.mlir.recovering_parser import RecoveringParser
from braid.frontends.mlir.source_map import MOST_FAULTS, SourceMap, StoppedError
from braid.passes.infrastructure.context import make_context
from braid.support.errors import BraidError
from braid.tools.lsp.analysis import analyze

ROOT = Path(__file__).parents[3]
CONTEXT = make_context()
TEXT = """func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.mul %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

func.func @g(%c: tensor<5xf32>) {
  return
}
"""


def parse(text: str) -> tuple[RecoveringParser, str]:
    parser = RecoveringParser(CONTEXT, text, "f.mlir", 0, lambda: False)
    return parser, str(parser.parse_recovering())


def faults(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the text and the message of each error."""
    return [
        (text.count("\n", 0, start) + 1, text[start:end], fault.message)
        for fault in parse(text)[0].map.faults
        for start, end in [fault.place]
    ]


def test_text_without_errors() -> None:
    parser, module = parse(TEXT)
    assert parser.map.faults == []
    assert module == str(parse_mlir(CONTEXT, TEXT, "f.mlir").module)
    assert [TEXT[slice(*op.name)] for op in parser.map.ops] == [
        *("braid.add", "braid.mul", "braid.neg", "return", "func.func", "return", "func.func")
    ]
    assert [TEXT[slice(*each.place)] for each in parser.map.definitions] == [
        *("%a", "%b", "%0", "%1", "%2", "%c")
    ]


def test_each_wrong_op_is_reported_and_its_readers_are_not() -> None:
    text = TEXT.replace("braid.add", "braid.ad").replace("return\n", "return %d : f32\n")
    assert faults(text) == [
        (2, "braid.ad", "op 'braid.ad' is not registered"),
        (9, "%d", "use of value '%d', which is not defined"),
    ]
    parser, module = parse(text)
    assert [type(op.op) for op in parser.map.ops].count(FuncOp) == 2
    assert "braid.neg" in module


def test_value_of_another_function_is_not_meant() -> None:
    text = TEXT.replace("braid.neg %1", "braid.neg %c")
    assert faults(text) == [(4, "%c", "use of value '%c', which is not defined")]


@pytest.mark.parametrize(
    ("typed", "line", "at"),
    [
        ("%1 = braid.mul %0,", 3, ","),
        ("%1 = braid.mul", 3, "l"),
        ("%1 = ", 3, "="),
        ("%1 = braid.mul %0, %b : (tensor<4x", 3, "x"),
        ('%1 = "braid.mul', 3, '"braid.mul'),
        ("%1 = braid.mul %0, % : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>", 3, "%"),
    ],
)
def test_half_an_op_is_reported_where_it_ends(typed: str, line: int, at: str) -> None:
    whole = "%1 = braid.mul %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
    text = TEXT.replace(whole, typed)
    assert [(each[0], each[1]) for each in faults(text)] == [(line, at)]
    assert "func.func @g" in parse(text)[1]


def test_function_whose_head_is_wrong_leaves_the_next_one() -> None:
    text = TEXT.replace("@f(%a: tensor<4xf32>", "@f(%a tensor<4xf32>")
    assert [each[0] for each in faults(text)] == [1]
    assert "func.func @g" in parse(text)[1]


def test_errors_are_bounded() -> None:
    assert len(faults("func.func @f() {\n" + "  %0 = braid.ad\n" * 1000 + "}\n")) == MOST_FAULTS
    assert len(faults('"\n' * 10_000)) == MOST_FAULTS


def test_stop() -> None:
    with pytest.raises(StoppedError):
        RecoveringParser(CONTEXT, TEXT, "f.mlir", 0, lambda: True).parse_recovering()


TEXTS = sorted((ROOT / "test" / "dialects").rglob("*.mlir"))[::6]
PIECES = ["%", '"', "{", "}", "(", ")", "<", ">", "@", "#", "!", "^", "é", "::", "->", "//", "\n"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_damaged_texts(path: Path) -> None:
    """It finds errors exactly where the parser and the verifier find one."""
    whole = path.read_text()
    random_ = random.Random(path.stem)
    for _ in range(6):
        at, length = random_.randrange(len(whole)), random_.randrange(20)
        cut = at if random_.random() < 0.3 else len(whole)
        text = whole[:at] + random_.choice(PIECES) + whole[at + length : cut]
        found = analyze(text, "f.mlir", lambda _: CONTEXT).problems
        assert bool(found) == _is_wrong(text)


def _is_wrong(text: str) -> bool:
    for part in text.split("// -----\n"):
        try:
            verify_module(parse_mlir(CONTEXT, part, "f.mlir").module)
        except BraidError:
            return True
    return False


def places(map: SourceMap, text: str) -> set[str]:
    return {text[slice(*op.place)] for op in map.ops}


def test_ops_on_lines_of_a_kind_have_places() -> None:
    """Such lines are not parsed again, see `repeated_ops`."""
    adds = "".join(
        f"  %v{i} = braid.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
        for i in range(4)
    )
    text = f"func.func @f(%a: tensor<4xf32>) {{\n{adds}  return\n}}\n"
    parser, _ = parse(text)
    assert {each.strip() for each in adds.splitlines()} < places(parser.map, text)
    assert [text[slice(*d.place)] for d in parser.map.definitions] == [
        *("%a", "%v0", "%v1", "%v2", "%v3")
    ]
