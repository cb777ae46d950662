"""A model that was compiled before, with one op changed: only that op's kernel is compiled."""

from collections.abc import Sequence

import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.lowering.host.codegen import compiler
from braid.support.object_cache import ObjectCache
from braid.universe import make_context


def model(dim: int) -> str:
    """A chain of ops that do not fuse; the second softmax is along `dim`."""
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


def test_changing_one_op_recompiles_only_its_kernel(
    cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compile_missing = compiler._compile  # pyright: ignore[reportPrivateUsage]

    def counted(names: Sequence[str], *rest: object) -> list[bytes]:
        compiled.extend(names)
        return compile_missing(names, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "_compile", counted)
    counts: list[int] = []
    for dim in (3, 3, 2):
        before = len(compiled)
        braid.compile(parse_mlir(make_context(), model(dim), "f.mlir").module, jobs=1)
        counts.append(len(compiled) - before)
    assert counts[0] > 2
    assert counts[1:] == [0, 1]
