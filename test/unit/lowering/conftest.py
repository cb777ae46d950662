"""A small kernel and a cache of the test's own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.parser import Parser

from braid.support.object_cache import ObjectCache, default_cache
from braid.targets.kernels.kernel_family import Kernel
from braid.universe import make_context

TEXT = """
func.func @NAME(%x: memref<8xf32> {llvm.noalias}, %y: memref<8xf32> {llvm.noalias},
                %begin: index, %end: index) {
  %one = arith.constant 1 : index
  %factor = arith.constant FACTOR : f32
  scf.for %i = %begin to %end step %one {
    %value = memref.load %x[%i] : memref<8xf32>
    %root = math.cbrt %value : f32
    %product = arith.mulf %root, %factor : f32
    memref.store %product, %y[%i] : memref<8xf32>
  }
  func.return
}
"""

MakeKernel = Callable[..., Kernel]


@pytest.fixture
def make_kernel() -> MakeKernel:
    """y[i] = factor * cbrt(x[i]): calls libm."""

    def make(symbol: str = "kernel", factor: float = 2.0, text: str = TEXT) -> Kernel:
        text = text.replace("NAME", symbol).replace("FACTOR", str(factor))
        context = make_context()
        context.allow_unregistered = True
        return Kernel(symbol, Parser(context, text).parse_module(), grid=8)

    return make


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    return default_cache()
