"""A model that was compiled before, with one op changed: only that op's kernel is compiled."""

from collections.abc import Sequence

import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.lowering.host.codegen import compiler
from braid.support.object_cache import ObjectCache
from braid.universe import make_context


def model(dim: int) -> str:
    """Return a chain of ops that do not fuse; the second softmax is along `dim`."""
    return f"""func.func @main(%x: tensor<1x1x16x16xf32>) -> tensor<1x1x1x1xf32> {{
      %0 = braid.matmul %x, %x : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>)
        -> tensor<1x1x16x16xf32>
      %1 = braid.softmax %0 {{dim = 3 : i64}} : (tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
      %2 = braid.softmax %1 {{dim = {dim} : i64}} : (tensor<1x1x16x16xf32>)
        -> tensor<1x1x16x16xf32>
      %3 = braid.reduce %2 {{kind = "maximum", dims = array<i64: 2, 3>}} : (tensor<1x1x16x16xf32>)
        -> tensor<1x1x1x1xf32>
      func.return %3 : tensor<1x1x1x1xf32>
    }}"""


@pytest.fixture
def compiled(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Yield the labels of all code that is compiled, not found."""
    labels: list[str] = []
    compile_missing = compiler._compile  # pyright: ignore[reportPrivateUsage]

    def counted(own: Sequence[str], *rest: object) -> list[bytes]:
        labels.extend(own)
        return compile_missing(own, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "_compile", counted)
    return labels


def compile_model(dim: int, compiled: list[str]) -> list[str]:
    """Return the labels of code that was compiled for the model, not found."""
    before = len(compiled)
    braid.compile(parse_mlir(make_context(), model(dim), "f.mlir").module, jobs=1)
    return compiled[before:]


def test_changing_one_op_recompiles_only_its_kernel(compiled: list[str]) -> None:
    first, same, changed = (compile_model(dim, compiled) for dim in (3, 3, 2))
    assert len(first) > 3 and "the host program" in first
    assert same == []
    assert len([label for label in changed if label.startswith("kernel")]) == 1


def test_another_code_generator_compiles_all_anew(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compile_model(3, compiled)
    monkeypatch.setattr(compiler, "VERSION", compiler.VERSION + 1)
    assert compile_model(3, compiled) == first
