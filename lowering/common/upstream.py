"""Upstream MLIR's passes on modules as text; xDSL is not needed for it."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from braid.support.errors import BraidError
from braid.support.mlir_bindings import ir, llvm, passmanager

_TEXT_OF_A_CONTEXT = 1 << 24
"""The characters that a context reads before there is a new one, since it forgets nothing."""


class _Session(threading.local):
    """The context of a thread, since making one takes as long as the passes of a kernel.

    It has no threads, so that a child of fork can go on with it.
    """

    def __init__(self) -> None:
        self._context: Any = None
        self._managers: dict[tuple[Sequence[str], bool], Any] = {}
        self._read = 0

    def context(self, text: str) -> Any:
        """Return the context for a module of this text."""
        self._read += len(text)
        if self._context is None or self._read > _TEXT_OF_A_CONTEXT:
            self._managers.clear()
            self._context = ir.Context()
            self._context.enable_multithreading(False)
            self._read = len(text)
        return self._context

    def manager(self, passes: Sequence[str], verifies: bool) -> Any:
        """Return a function that runs the passes in the context of this thread, which is
        entered."""
        key = (tuple(passes), verifies)
        if key not in self._managers:
            manager = passmanager.PassManager.parse(f"builtin.module({','.join(passes)})")
            manager.enable_verifier(verifies)
            self._managers[key] = manager
        return self._managers[key]


_session = _Session()


def run_upstream_passes(text: str, passes: Sequence[str]) -> str:
    """Return the module `text` after the upstream `passes`, again as text.

    Raises BraidError with upstream's diagnostics if it does not parse or a pass fails.
    """
    with _lowered(text, passes) as module:
        return str(module)


def generic_form(text: str, passes: Sequence[str]) -> str:
    """Run passes as `run_upstream_passes` does, and return the module in generic form, which xDSL
    parses.
    """
    with _lowered(text, passes) as module:
        return str(module.operation.get_asm(print_generic_op_form=True, assume_verified=True))


def to_llvm_ir(text: str, passes: Sequence[str]) -> str:
    """Return the module `text` as LLVM IR; `passes` must leave only the `llvm` dialect.

    IR is verified only at the end, since verification after each pass would take longer than the
    passes. Raises BraidError as `run_upstream_passes` does, and where another op is left.
    """
    with _lowered(text, passes, verifies=False) as module:
        require_translatable(module.operation)
        return str(llvm.translate_module_to_llvmir(module.operation))


def require_translatable(module: Any) -> None:
    """Raise BraidError for an op in `module`, at any depth, that has no translation to LLVM IR.

    The translation ends the process where it meets one.
    """
    found: set[str] = set()

    def note(op: Any) -> Any:
        if not op.name.startswith(_TRANSLATED):
            found.add(op.name)
        return ir.WalkResult.ADVANCE

    module.walk(note)
    if found:
        # Casts remain around an op that has no lowering.
        left = sorted(found - {_CAST}) or [_CAST]
        raise BraidError(f"upstream MLIR cannot lower {', '.join(map(repr, left))}")


_TRANSLATED = ("llvm.", "nvvm.", "builtin.module")
_CAST = "builtin.unrealized_conversion_cast"


@contextmanager
def _lowered(text: str, passes: Sequence[str], *, verifies: bool = True) -> Generator[Any]:
    with _session.context(text):
        try:
            module = ir.Module.parse(text)
            _session.manager(passes, verifies).run(module.operation)
            if not verifies:
                module.operation.verify()
        except (ir.MLIRError, ValueError) as error:
            raise BraidError(f"upstream MLIR rejects the kernel: {error}") from error
        yield module


_IN_RESULTS = "eliminate-empty-tensors"
"""The pass that lets values written into a slice or into the result be computed in place."""


def bufferization_passes(results: int) -> tuple[str, ...]:
    """Return the passes from a function on tensors that writes `results` results into buffers to
    one on buffers.

    If there are several, each is computed in separate memory: their initial values are one tensor
    after `cse`, and upstream would compute the second one in the buffer of the first.
    """
    return tuple(p for p in _BUFFERIZATION_PASSES if results == 1 or p != _IN_RESULTS)


_BUFFERIZATION_PASSES: tuple[str, ...] = (
    # Groups of upstream ops may hold arith and math on whole tensors.
    "func.func(convert-elementwise-to-linalg)",
    "canonicalize",
    "cse",
    # Producers are fused into their consumers: a value with one reader gets no buffer.
    "linalg-fuse-elementwise-ops",
    "canonicalize",
    "cse",
    # tensor.pad becomes a fill and an insert_slice, which bufferize in place.
    "convert-tensor-to-linalg",
    _IN_RESULTS,
    "one-shot-bufferize",
    "canonicalize",
    "cse",
    # Copies of a buffer to itself show only now.
    "canonicalize",
)
