"""Errors about `.mlir` models: every missing op, with the most similar one."""

from pathlib import Path

import pytest

import braid
from braid.support.unsupported_ops import PAGE, UnsupportedNodesError

TENSOR = "tensor<4x4xf32>"


def refusal(tmp_path: Path, *lines: str, type: str = TENSOR) -> braid.BraidError:
    """Return the error of compiling a function of these lines, which computes %y from %x."""
    head = f'@main(%x: {type} {{braid.name = "x"}}) -> ({type} {{braid.name = "y"}})'
    typed = type if "arith" in lines[0] else f"({type}) -> {type}"
    body = "\n".join(f"  {line} : {typed}" for line in lines)
    path = tmp_path / "model.mlir"
    path.write_text(f"func.func {head} {{\n{body}\n  func.return %y : {type}\n}}\n")
    with pytest.raises(braid.BraidError) as caught:
        braid.compile(path)
    return caught.value


@pytest.mark.parametrize(
    ("dialect", "first", "nearest"),
    [("stablehlo", "all_reduce", ""), ("tosa", "row_gather", "gather"), ("tf", "Addd", "")],
)
def test_all_are_counted(tmp_path: Path, dialect: str, first: str, nearest: str) -> None:
    error = refusal(
        tmp_path,
        f'%a = "{dialect}.{first}"(%x)',
        f'%b = "{dialect}.custom"(%a)' if dialect != "stablehlo" else '%b = "stablehlo.recv"(%a)',
        '%y = "tosa.abs"(%b)',
    )
    assert isinstance(error, UnsupportedNodesError)
    assert f"the op {dialect}.{first} is not supported (dialect '{dialect}')" in error.message
    assert str(error.location) == f"{tmp_path / 'model.mlir'}:2:8"
    assert "1 more node of the model would still be missing" in error.notes[0].message
    assert error.hint is not None and PAGE in error.hint
    assert (f"nearest supported op is '{nearest}'" in error.hint) is bool(nearest)


@pytest.mark.parametrize(
    ("op", "nearest"), [("braid.maxmum", "braid.maximum"), ("tosa.abss", "abs")]
)
def test_a_misspelled_op(tmp_path: Path, op: str, nearest: str) -> None:
    error = refusal(tmp_path, f"%y = {op} %x")
    assert op in error.message
    assert error.hint is not None and f"nearest supported op is '{nearest}'" in error.hint


def test_what_depends_on_a_refused_op_is_not_blamed(tmp_path: Path) -> None:
    """The size of the operand of `reverse` is unknown because of another refusal."""
    error = refusal(
        tmp_path,
        '%a = "stablehlo.all_to_all"(%x)',
        '%b = "stablehlo.reverse"(%a) <{dimensions = array<i64: 0>}>',
        '%c = "stablehlo.recv"(%x)',
        '%y = "stablehlo.abs"(%b)',
        type="tensor<?x4xf32>",
    )
    assert isinstance(error, UnsupportedNodesError)
    assert [op for op, _ in error.found] == ["stablehlo.all_to_all", "stablehlo.recv"]


def test_element_types_of_upstream_ops(tmp_path: Path) -> None:
    error = refusal(
        tmp_path, "%a = arith.addi %x, %x", "%y = arith.muli %x, %x", type="tensor<4xi48>"
    )
    assert isinstance(error, UnsupportedNodesError)
    assert [op for op, _ in error.found] == ["arith.addi", "arith.muli"]
    assert error.notes[1].message.startswith("'arith.muli' on element type i48, expected f16")
