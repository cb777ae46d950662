"""Asking backends of other packages, whose mistakes are named as theirs.

Braid's own backends are believed: what they raise is a bug of braid.
"""

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError
from braid.targets.backend import (
    Backend,
    Code,
    EmittedKernels,
    Grouping,
    Job,
    KernelMeter,
    KernelNeeds,
    Measuring,
    Preparation,
    Selective,
    StandingGroup,
    Unmeasured,
)
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.machines.target import Device

T = TypeVar("T")

_PARTS, _EMITTED_PARTS = (
    tuple(name for name in vars(protocol) if not name.startswith("_"))
    for protocol in (Backend, EmittedKernels)
)
"""What the protocols ask of a backend, and of the kernels that it emits."""


@dataclass(frozen=True)
class BackendOfPackage:
    """A `Backend`; whatever its methods raise becomes a BraidError that names it."""

    name: str
    backend: Backend

    @property
    def stages(self) -> Sequence[str]:
        """As in `Backend`."""
        with self.named("stages"):
            return _all_of(self.backend.stages, str)

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """As in `Backend`; each family is checked when it is asked."""
        with self.named("families"):
            return tuple(self.backend.families(device, installed))

    def prepare(self, job: Job) -> Preparation:
        """As in `Backend`."""
        with self.named("prepare"):
            found = _one_of(self.backend.prepare(job), Preparation)
            names = (*found.before_folding, *found.before_fusion, *found.before_kernels)
            _all_of(names, str)
        return found

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> EmittedKernels:
        """As in `Backend`."""
        with self.named("emit"):
            emitted = self.backend.emit(kernels, job)
            if missing := [part for part in _EMITTED_PARTS if not hasattr(type(emitted), part)]:
                own = getattr(emitted, "__dict__", {})
                if missing := [part for part in missing if part not in own]:
                    parts = ", ".join(f"'{part}'" for part in missing)
                    raise TypeError(f"{type(emitted).__qualname__} has no {parts}")
        return EmittedByPackage(self, emitted, len(kernels))

    def refusal(self, op: Operation, known: ParameterExpressions) -> str | None:
        """As in `Selective`; None where it is not one."""
        if not isinstance(self.backend, Selective):
            return None
        with self.named("refusal"):
            found = self.backend.refusal(op, known)
            return None if found is None else _one_of(found, str)

    def meter(self, job: Job) -> "AbstractContextManager[KernelMeter] | None":
        """As in `Measuring`; None where it is not one."""
        return self._meter(self.backend, job) if isinstance(self.backend, Measuring) else None

    @property
    def grouping(self) -> "GroupingOfPackage | None":
        """As `Grouping`; None where it is not one."""
        backend = self.backend
        return GroupingOfPackage(self, backend) if isinstance(backend, Grouping) else None

    @property
    def schedules_by(self) -> str | None:
        """As in `Unmeasured`; None where it is not one."""
        if not isinstance(self.backend, Unmeasured):
            return None
        with self.named("schedules_by"):
            return _one_of(self.backend.schedules_by, str)

    @contextmanager
    def _meter(self, backend: Measuring, job: Job) -> Generator[KernelMeter]:
        with self.named("meter"):
            opened = backend.meter(job)
            meter = opened.__enter__()
        try:
            yield MeterOfPackage(self, meter)
        finally:
            with self.named("meter"):
                opened.__exit__(None, None, None)

    @contextmanager
    def named(self, method: str) -> Generator[None]:
        """Turns whatever the method raises into a BraidError."""
        try:
            yield
        except BraidError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise BraidError(
                f"backend '{self.name}' fails in '{method}': {detail}",
                hint=f"mend {_class_of(self.backend)}; braid --debug … shows where",
            ) from error


@dataclass(frozen=True)
class GroupingOfPackage:
    """The `Grouping` that such a backend is."""

    owner: BackendOfPackage
    backend: Grouping

    @property
    def selecting(self) -> str:
        """As in `Grouping`."""
        with self.owner.named("selecting"):
            return _one_of(self.backend.selecting, str)

    def groups(self, function: FuncOp, job: Job) -> Sequence[StandingGroup]:
        """As in `Grouping`."""
        with self.owner.named("groups"):
            return _all_of(tuple(self.backend.groups(function, job)), StandingGroup)

    def group_family(self, job: Job) -> KernelFamily:
        """As in `Grouping`; the family is checked when it is asked."""
        with self.owner.named("group_family"):
            return self.backend.group_family(job)


@dataclass(frozen=True)
class EmittedByPackage:
    """The `EmittedKernels` of such a backend, of so many kernels."""

    owner: BackendOfPackage
    emitted: EmittedKernels
    kernels: int

    @property
    def needs(self) -> Sequence[KernelNeeds]:
        """As in `EmittedKernels`."""
        with self.owner.named("needs"):
            needs = _all_of(self.emitted.needs, KernelNeeds)
            if len(needs) != self.kernels:
                raise ValueError(f"there are {len(needs)}, for {self.kernels} kernels")
        return needs

    def link(self, functions: Sequence[FuncOp]) -> Sequence[Code]:
        """As in `EmittedKernels`."""
        with self.owner.named("link"):
            return _all_of(self.emitted.link(functions), Code)

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """As in `EmittedKernels`."""
        with self.owner.named("at"):
            return _all_of(self.emitted.at(stage, functions), (str, bytes))


@dataclass(frozen=True)
class MeterOfPackage:
    """The `KernelMeter` of such a backend."""

    owner: BackendOfPackage
    meter: KernelMeter

    @property
    def what(self) -> str:
        """As in `KernelMeter`."""
        with self.owner.named("what"):
            return _one_of(self.meter.what, str)

    @property
    def is_exact(self) -> bool:
        """As in `KernelMeter`."""
        with self.owner.named("is_exact"):
            return _one_of(self.meter.is_exact, bool)

    def made(self, kernels: Sequence[Kernel], group: FusedOp) -> Sequence[Any | None]:
        """As in `KernelMeter`."""
        with self.owner.named("made"):
            made = tuple(self.meter.made(kernels, group))
            if len(made) != len(kernels):
                raise ValueError(f"there are {len(made)}, for {len(kernels)} kernels")
        return made

    def seconds(self, made: Any) -> float | None:
        """As in `KernelMeter`."""
        with self.owner.named("seconds"):
            found = self.meter.seconds(made)
            seconds = None if found is None else float(found)
            if seconds is not None and not 0 < seconds < math.inf:
                raise ValueError(f"it is {seconds}, expected a positive number or None")
        return seconds

    def results(
        self, made: Any, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """As in `KernelMeter`."""
        with self.owner.named("results"):
            found = self.meter.results(made, operands, results)
            return None if found is None else _all_of(found, np.ndarray)


def checked_backend(name: str, found: object) -> Backend:
    """The backend of this name that was found. Raises BraidError where it lacks a part."""
    own = getattr(found, "__dict__", {})
    missing = [part for part in _PARTS if not hasattr(type(found), part) and part not in own]
    if missing:
        parts = ", ".join(f"'{part}'" for part in missing)
        raise BraidError(
            f"backend '{name}' has no {parts}",
            hint=f"mend {_class_of(found)}: a backend has all parts of the protocol Backend",
        )
    if type(found).__module__.startswith("braid."):
        return found  # pyright: ignore[reportReturnType]
    return BackendOfPackage(name, found)  # pyright: ignore[reportArgumentType]


def _one_of(value: T, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"it is {value!r}, expected a {kind.__name__}")
    return value


def _all_of(values: Iterable[T], kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    expected = " or ".join(each.__name__ for each in kinds)
    if isinstance(values, str | bytes):
        raise TypeError(f"it is {values!r}, expected a sequence of {expected}")
    found = tuple(values)
    for value in found:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is among what it gives, expected {expected}")
    return found


def _class_of(thing: object) -> str:
    return f"'{type(thing).__module__}:{type(thing).__qualname__}'"
