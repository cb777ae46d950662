"""Runs of compiled models in turns, in a process that they can end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from braid.analysis.profile.loop_lengths import Lengths
from braid.driver.packaging.weights import aligned_bytes
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.descriptor import SYMBOL
from braid.lowering.host.profile_counters import LAYOUT_MARK
from braid.runtime.native import NativeContext, NativeModel
from braid.support.errors import BraidError
from braid.support.shared_objects import need_libraries
from braid.tuning.synthetic_inputs import synthetic_inputs

_LEAST_SECONDS = 5e-4
"""The least seconds of a turn: a shorter run is repeated within one."""


@dataclass(frozen=True)
class Program:
    """A model compiled for this machine, with counters of a profile.

    `lengths` are the values of some inputs, by their number.
    """

    objects: tuple[bytes, ...]
    weights: NDArray[np.uint8]
    libraries: tuple[str, ...]
    lengths: Lengths = field(default_factory=dict[int, int])


@dataclass(frozen=True)
class TurnsRequest:
    """The number of turns of these programs, each loaded anew."""

    programs: tuple[int, ...]
    turns: int


@dataclass
class Turns:
    """Seconds of one run in each turn: in total, and of kernels by the names of their ops."""

    seconds: list[float] = field(default_factory=list[float])
    kernels: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, other: "Turns") -> None:
        """Add further turns of the same program."""
        self.seconds += other.seconds
        for name, seconds in other.kernels.items():
            self.kernels.setdefault(name, []).extend(seconds)


class Programs:
    """The programs that were sent, by number."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        """Measure seconds by `clock`: those of this thread, without other processes."""
        self._clock = clock
        self._sent: list[Program] = []

    def answer(self, request: Program | TurnsRequest) -> object:
        """Return the number of a program, or the `Turns` of each that is asked for; why it
        fails.
        """
        if isinstance(request, TurnsRequest):
            try:
                return self._turns([self._sent[n] for n in request.programs], request.turns)
            except BraidError as error:
                return error.message
        self._sent.append(replace(request, weights=self._placed(request.weights)))
        return len(self._sent) - 1

    def _placed(self, weights: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return where code may read them; equal ones are stored once."""
        for program in self._sent:
            if np.array_equal(program.weights, weights):
                return program.weights
        placed = aligned_bytes(weights.size)
        placed[...] = weights
        return placed

    def _turns(self, programs: Sequence[Program], count: int) -> list[Turns]:
        """Run turns of programs that are loaded anew: where code and arenas lie is part of the
        noise.
        """
        runs = [_Run(program, self._clock) for program in programs]
        found = [Turns() for _ in runs]
        for _ in range(count):
            for run, turns in zip(runs, found, strict=True):
                turns.add(run.turn())
        return found


class _Run:
    """A loaded program with synthetic arguments that has run once."""

    def __init__(self, program: Program, clock: Callable[[], float]) -> None:
        need_libraries(program.libraries, "the model")
        code = load_objects(program.objects)
        weights = program.weights if program.weights.size else None
        native = NativeModel.from_descriptor(code.address(SYMBOL), weights, code)
        self._context, self._clock = NativeContext(native, 1), clock
        self._inputs = synthetic_inputs(native.inputs, program.lengths)
        self._context.run(self._inputs)
        began = clock()
        self._context.run(self._inputs)
        self._times = max(1, round(_LEAST_SECONDS / max(clock() - began, 1e-7)))

    def turn(self) -> Turns:
        """Return the mean of the runs of one turn."""
        self._context.reset_profile()
        began = self._clock()
        for _ in range(self._times):
            self._context.run(self._inputs)
        seconds = (self._clock() - began) / self._times
        kernels: dict[str, list[float]] = {}
        for counter, entry in self._context.profile().items():
            names = kernels.setdefault(counter.split(LAYOUT_MARK)[0], [0.0])
            names[0] += entry.seconds / self._times
        return Turns([seconds], kernels)
