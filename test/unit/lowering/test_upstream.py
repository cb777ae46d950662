import gc
import weakref

import pytest

from braid.lowering.common import upstream
from braid.lowering.common.upstream import run_upstream_passes, to_llvm_ir
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.support.errors import BraidError

FUNCTION = """func.func @f(%x: memref<4xf32>, %i: index) {
  %0 = arith.constant 1.0 : f32
  memref.store %0, %x[%i] : memref<4xf32>
  func.return
}"""


def test_modules_after_a_rejected_one_are_lowered() -> None:
    expected = to_llvm_ir(FUNCTION, LLVM_PASSES)
    for wrong in ('"some.thing"() : () -> ()', "not a module", FUNCTION.replace("%i]", "]")):
        with pytest.raises(BraidError, match="upstream MLIR rejects"):
            to_llvm_ir(wrong, LLVM_PASSES)
    assert to_llvm_ir(FUNCTION, LLVM_PASSES) == expected


def test_passes_that_there_are_not() -> None:
    with pytest.raises(BraidError, match="no-such-pass"):
        run_upstream_passes(FUNCTION, ["no-such-pass"])


def test_contexts_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_TEXT_OF_A_CONTEXT", 3 * len(FUNCTION))
    session = upstream._Session()  # pyright: ignore[reportPrivateUsage]
    contexts = [session.context(FUNCTION) for _ in range(5)]
    assert [context is contexts[0] for context in contexts] == [True, True, True, False, False]
    first = weakref.ref(contexts[0])
    del contexts
    gc.collect()
    assert first() is None
