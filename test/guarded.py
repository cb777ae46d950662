"""Runs of models with guard pages around every buffer, each in a process that may crash.

`run_guarded(cases)` compiles each model twice. Every input, output, weight and intermediate has
separate pages, with an inaccessible one before and after: in the first runs it ends where that
after it begins, in the second ones it begins where that before it ends. The rest of its pages is
filled with a pattern that must be unchanged after the run. No memory is shared: buffers that a plan
would put into one place are apart. Places that are known at compile time are moved apart here,
those of inputs, outputs, values between phases and arenas of open models at run time, by the
runtime with `guard_pages.c`.

`python test/guarded.py MODEL.onnx` does so with random inputs. Sanitizers do not see such errors,
since they do not instrument generated code.
"""

import ctypes
import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from braid.passes.infrastructure.decision_checks import VARIABLE

Arrays = list[Any]
PAGE = mmap.PAGESIZE
PATTERN = 0xA5
LIBRARY = "guarded_runtime.so"


class Side(StrEnum):
    """The end of a buffer that touches an inaccessible page."""

    END = "end"
    BEGIN = "begin"


@dataclass(frozen=True)
class Case:
    """A model with the inputs of each run; `constants` are values that are fixed at import."""

    name: str
    model: bytes
    runs: Sequence[Arrays]
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    state: dict[str, str] = field(default_factory=dict[str, str])
    """As `braid.compile` takes it; runs are then steps of a session."""
    sides: Sequence[Side] = tuple(Side)
    missing: int = 0
    """Bytes by which intermediates and weights are planned too small, to see guards at work."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: `outputs` of each run by side, or an error and whether it is a
    failure.
    """

    outputs: dict[str, list[Arrays]]
    refusal: str = ""
    failure: str = ""


def run_guarded(cases: Sequence[Case], *, seconds: float = 60.0) -> list[Outcome]:
    """Run the cases; one that crashes its process or takes longer than `seconds` has failed."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        _build_runtime(Path(folder))
        while len(outcomes) < len(cases):
            rest = cases[len(outcomes) :]
            found, ending = _in_child(rest, Path(folder), seconds)
            outcomes += found
            if len(found) < len(rest):
                outcomes.append(Outcome({}, failure=ending))
    return outcomes


def _build_runtime(folder: Path) -> None:
    """Link the runtime with `guard_pages.c`, whose runs take the place of its own."""
    from braid.runtime.native_abi import find_headers, find_runtime

    headers, own = find_headers(), Path(__file__).with_name("guard_pages.c")
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    command += ["-pthread", f"-I{headers}", f"-I{headers.parent / 'src'}", str(own)]
    command += ["-Wl,--wrap=braid_context_run", "-Wl,--whole-archive"]
    command += [str(find_runtime("libbraid_runtime.a")), "-Wl,--no-whole-archive", "-lm", "-ldl"]
    subprocess.run([*command, "-o", str(folder / LIBRARY)], check=True)


def _in_child(cases: Sequence[Case], folder: Path, seconds: float) -> tuple[list[Outcome], str]:
    """Return the outcomes before the process ended, and its exit status."""
    given, made = folder / "cases", folder / "outcomes"
    # Names alone of the sides: the child knows this file as a script.
    fields = [vars(case) | {"sides": list(map(str, case.sides))} for case in cases]
    given.write_bytes(pickle.dumps(fields))
    made.write_bytes(b"")
    command = [sys.executable, __file__, "--child", str(folder), str(seconds)]
    # The plan's claims about its arena do not hold for separate buffers.
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    process = subprocess.run(command, stderr=subprocess.PIPE, env=environment, check=False)
    outcomes: list[Outcome] = []
    with made.open("rb") as file:
        while file.tell() < made.stat().st_size:
            outcomes.append(Outcome(*pickle.load(file)))
    status = process.returncode
    ending = f"status {status}" if status >= 0 else signal.Signals(-status).name
    return outcomes, f"{ending}: {process.stderr.decode(errors='replace')[-2000:]}"


class Pages:
    """Pages of memory of which only some can be accessed."""

    def __init__(self, size: int) -> None:
        self.size = -(-max(size, 1) // PAGE) * PAGE
        self._memory = mmap.mmap(-1, self.size)
        self.bytes = np.frombuffer(self._memory, np.uint8)
        self.bytes[:] = PATTERN

    @property
    def address(self) -> int:
        return self.bytes.ctypes.data

    def keep_only(self, used: set[int]) -> None:
        """Make every page inaccessible whose index is not in `used`."""
        libc = ctypes.CDLL(None, use_errno=True)
        for page in set(range(self.size // PAGE)) - used:
            if libc.mprotect(ctypes.c_void_p(self.address + page * PAGE), PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")


class Layout:
    """A layout of buffers in pages of their own; `used` are the indices of those pages."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.size = PAGE
        self.used: set[int] = set()
        self.places: list[tuple[int, int]] = []
        """The offset and bytes of each buffer."""
        self.slack: list[tuple[int, int]] = []

    def place(self, size: int) -> int:
        """Return the offset of a buffer."""
        pages = -(-size // PAGE)
        first = self.size // PAGE
        self.used |= set(range(first, first + pages))
        begin, end = self.size, self.size + pages * PAGE
        offset = begin if self._side == Side.BEGIN else end - size
        self.places.append((offset, size))
        self.slack += [(begin, offset), (offset + size, end)]
        self.size = end + PAGE
        return offset

    def check(self, pages: Pages, what: str) -> None:
        """Raise AssertionError if memory outside of the buffers has changed."""
        for begin, end in self.slack:
            changed = np.flatnonzero(pages.bytes[begin:end] != PATTERN)
            assert not changed.size, f"{what}: byte {begin + int(changed[0])} was written"


def _leave(storages: Sequence[Any]) -> None:
    """Put nothing into outputs."""


def _compiled(case: Case, side: Side) -> tuple[Any, Layout, Layout, list[Pages]]:
    """Compile the model with a plan in which no buffers or weights share pages."""
    import braid
    from braid.analysis.storage.stored_weights import weight_key
    from braid.dialects.braid.buffer import BufferAttr
    from braid.driver import lowered_model
    from braid.frontends.onnx import import_onnx
    from braid.passes.storage import placement, plan_memory

    # Sizes are multiples of the elements' sizes, which is all that loads and stores require.
    arena, weights = Layout(side), Layout(side)
    sections: list[Pages] = []

    def place_apart(storages: Sequence[Any], time_limit: float) -> list[Any]:
        for storage in storages:
            if storage.place is None:
                assert not storage.memory
                storage.place = BufferAttr.of("arena", arena.place(storage.size - case.missing))
        return [placement.Arena("", arena.size, arena.size)]

    def place_weights(section: Any, values: Sequence[tuple[Any, Any]]) -> None:
        for value, storage in values:
            key = weight_key(value)
            if key is None:
                continue
            if key not in section.places:
                offset = weights.place(storage.size - case.missing)
                section.places[key] = BufferAttr.of("weights", offset)
                section.size = weights.size
            storage.place = section.places[key]

    def section_of(size: int) -> Any:
        sections.append(Pages(size))
        return sections[-1].bytes[:size]

    for owner, name, replacement in (
        (plan_memory, "place_in_arenas", place_apart),
        (plan_memory, "place_in_outputs", _leave),
        (placement.WeightsSection, "place", place_weights),
        (lowered_model, "aligned_bytes", section_of),
    ):
        setattr(owner, name, replacement)
    proto = ModelProto.FromString(case.model)
    source: Any = proto
    options: dict[str, Any] = {}
    if case.constants:
        imported = import_onnx(proto, constants=case.constants)
        source, options = imported.module, {"parameters": imported.parameters}
    if case.state:
        options["state"] = case.state
    model = braid.compile(source, cache=False, jobs=1, **options)
    return model, arena, weights, sections


def _run(case: Case, side: Side) -> list[Arrays]:
    """Compile and run with guard pages; return the outputs of each run."""
    from braid.runtime.native_abi import load_library

    model, arena, weights, sections = _compiled(case, side)
    for section in sections:
        section.keep_only(weights.used)
    library = load_library()
    library.guard_pages(side == Side.BEGIN, ctypes.c_size_t(case.missing))
    places = (ctypes.c_int64 * (2 * len(arena.places)))(*chain.from_iterable(arena.places))
    library.guard_places(places, ctypes.c_int64(len(arena.places)), ctypes.c_size_t(arena.size))
    if case.state:
        return _steps(model, case.runs)
    # Another context would have a separate arena.
    context = model._open().executor._take()
    outputs = [list(map(np.array, context.run(inputs))) for inputs in case.runs]
    for section in sections:
        weights.check(section, "a section of weights")
    return outputs


def _steps(model: Any, runs: Sequence[Arrays]) -> list[Arrays]:
    """Return the outputs of each step, and the state after it by the names of its inputs."""
    session = model.session()
    found: list[Arrays] = []
    for inputs in runs:
        made = session(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        state = (session.state[name] for name in sorted(session.state))
        found.append([np.array(array) for array in (*outputs, *state)])
    return found


def outcome_of(case: Case) -> Outcome:
    """Compile and run in this process, which crashes on access to a guard page."""
    from braid.support.errors import BraidError

    outputs: dict[str, list[Arrays]] = {}
    try:
        for side in case.sides:
            outputs[side] = _run(case, Side(side))
    except BraidError as error:
        return Outcome(outputs, refusal=str(error))
    except Exception:
        return Outcome(outputs, failure=traceback.format_exc())
    return Outcome(outputs)


def _take_guarded_runtime(path: Path) -> None:
    """Let this process run models by the runtime at this path."""
    from braid.runtime import native_abi

    native_abi.find_library = lambda: path
    library = native_abi.load_library()
    run = library.__wrap_braid_context_run
    run.argtypes = library.braid_context_run.argtypes
    library.braid_context_run = run


def _child(folder: Path, seconds: float) -> None:
    _take_guarded_runtime(folder / LIBRARY)
    with (folder / "outcomes").open("ab", buffering=0) as file:
        for fields in pickle.loads((folder / "cases").read_bytes()):
            signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM ends the process
            outcome = outcome_of(Case(**fields))
            file.write(pickle.dumps((outcome.outputs, outcome.refusal, outcome.failure)))
            signal.setitimer(signal.ITIMER_REAL, 0)
    os._exit(0)  # Memory that a context has is not to be given back in a certain order.


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        _child(Path(sys.argv[2]), float(sys.argv[3]))
    status = 0
    for path in sys.argv[1:]:
        from braid.interpreted import interpret

        model = interpret(path)
        random = np.random.default_rng(0)
        inputs = [random.standard_normal(s.shape).astype(s.dtype) for s in model.inputs]
        (outcome,) = run_guarded([Case(path, Path(path).read_bytes(), [inputs])], seconds=600)
        print(f"{path}: {outcome.refusal or outcome.failure or 'nothing beyond its buffers'}")
        status |= bool(outcome.failure)
    return status


if __name__ == "__main__":
    sys.exit(main())
