"""The backends by name: those of all installed packages, braid's own among them."""

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import cast

from braid.dialects.braid.regions import FusedOp
from braid.support.compile_scope import compile_setting
from braid.support.entry_points import installed_backend, installed_backends, installed_families
from braid.support.errors import BraidError
from braid.targets.backend import Backend, Grouping, Job, KernelMeter, Measuring, Unmeasured
from braid.targets.backend_calls import BackendOfPackage, checked_backend
from braid.targets.kernels.kernel_family import (
    LIBRARIES,
    Candidate,
    KernelFamily,
    is_approximate,
)
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device, Target
from braid.targets.numerics import Numerics, numerics_chosen

_HIDDEN = compile_setting("without_families", default=False)
"""Whether kernel families are left out."""
_STAND_IN: ContextVar[Callable[[str], Backend] | None] = compile_setting("stand_ins", None)
"""What makes a backend for a name that no installed package has."""


class Kernels(StrEnum):
    """Whose kernels a model gets.

    Those that braid generates; those of a vendor's library, wherever that has one; or the best of
    both, by what was measured.
    """

    GENERATED = "generated"
    LIBRARY = "library"
    BEST = "best"


IsSearched = Callable[[FusedOp, Machine], bool]
"""Whether anything is recorded of how a group is best made on a machine."""


@dataclass(frozen=True)
class _Choice:
    """Whose kernels; if not `is_searched` the library's, where that is asked."""

    kernels: Kernels = Kernels.GENERATED
    is_searched: IsSearched | None = None


_GENERATED = _Choice()
_KERNELS = compile_setting("kernels", _GENERATED)


def backend(name: str) -> Backend:
    """The backend that makes code under this name, see `targets/backend.py`.

    Raises `BraidError` where no installed package has it, outside of `stand_ins`, two have it, or
    it cannot be loaded.
    """
    make = _STAND_IN.get()
    return make(name) if make is not None and _is_stood_for(name) else _checked(name)


def backend_names() -> tuple[str, ...]:
    """The names of all backends that are installed, sorted."""
    return installed_backends()


def has_all_backends(target: Target) -> bool:
    """Whether there are the backends of all its devices, those of `stand_ins` among them."""
    known = set(backend_names())
    return _STAND_IN.get() is not None or {d.backend for d in target.devices} <= known


def is_launched(target: Target, devices: Iterable[str]) -> bool:
    """Whether a model that runs on `devices` launches functions, and is not one program.

    What the host stands for is launched: such a device is as slow as its target says.
    """
    names = set(devices)
    return target.is_launched(names) or any(_is_stood_for(target.device(n).backend) for n in names)


def kernel_families(device: Device) -> tuple[KernelFamily, ...]:
    """The kernel families of the backend of `device` for its machine, in order of preference.

    Those that installed packages add to it (entry points `braid.kernel_families.NAME`) stand
    first. There are none inside of `without_families`. Raises `BraidError` as `backend`, and where
    a family cannot be loaded.
    """
    if _HIDDEN.get():
        return ()
    if _is_stood_for(device.backend):
        # What packages add to a backend that is not here need not fit what stands for it.
        return tuple(backend(device.backend).families(device, ()))
    return _families(device, device.machine, _KERNELS.get(), numerics_chosen())


def meter_of(job: Job) -> AbstractContextManager[KernelMeter] | None:
    """What says how fast kernels of the device of `job` are; None where its backend has nothing.

    Raises BraidError as `backend` and `Measuring.meter`.
    """
    if _HIDDEN.get() or _is_stood_for(job.device.backend):
        return None
    own = backend(job.device.backend)
    if isinstance(own, BackendOfPackage):
        return own.meter(job)
    return own.meter(job) if isinstance(own, Measuring) else None


def grouping_of(device: Device) -> Grouping | None:
    """What makes other groups of what `device` runs; None where its backend takes fusion's.

    Raises BraidError as `backend`.
    """
    if _HIDDEN.get() or _is_stood_for(device.backend):
        return None
    own = backend(device.backend)
    if isinstance(own, BackendOfPackage):
        return own.grouping
    return own if isinstance(own, Grouping) else None


def schedules_without_measuring(device: Device) -> str | None:
    """What chooses the schedules of `device` instead of a search; None where its backend is silent.

    Raises BraidError as `backend`.
    """
    if _is_stood_for(device.backend):
        return None
    own = backend(device.backend)
    if isinstance(own, BackendOfPackage):
        return own.schedules_by
    return own.schedules_by if isinstance(own, Unmeasured) else None


@contextmanager
def without_families() -> Generator[None]:
    """Let backends have no kernel families, so that all code is that of the generic lowering."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@contextmanager
def kernels_from(kernels: str, *, unless: IsSearched | None = None) -> Generator[None]:
    """Let kernels be whose `Kernels` says. Raises `BraidError` where it does not say that.

    Where `unless` is asked and says no, groups have the library's kernels wherever it has one.
    """
    if kernels not in list(Kernels):
        raise BraidError(f"kernels are {kernels!r}, expected one of {', '.join(Kernels)}")
    token = _KERNELS.set(_Choice(Kernels(kernels), unless))
    try:
        yield
    finally:
        _KERNELS.reset(token)


def kernels_chosen() -> Kernels:
    """What the innermost `kernels_from` says, by default generated ones."""
    return _KERNELS.get().kernels


def is_library_on_miss() -> bool:
    """Whether the innermost `kernels_from` says so."""
    return _KERNELS.get().is_searched is not None


def _is_stood_for(name: str) -> bool:
    return _STAND_IN.get() is not None and name not in backend_names()


@contextmanager
def stand_ins(make: Callable[[str], Backend]) -> Generator[None]:
    """Let `make`, called with the name, give the backends that no installed package has."""
    token = _STAND_IN.set(make)
    try:
        yield
    finally:
        _STAND_IN.reset(token)


@cache
def _families(
    device: Device, machine: Machine, choice: _Choice, numerics: Numerics
) -> tuple[KernelFamily, ...]:
    """Made once for what is known of the machine, since families remember what they searched."""
    added = cast(tuple[KernelFamily, ...], installed_families(device.backend, machine))
    families = tuple(backend(device.backend).families(device, added))
    if numerics is Numerics.STRICT:
        families = tuple(family for family in families if not is_approximate(family))
    libraries = tuple(family for family in families if family.name in LIBRARIES)
    kernels = choice.kernels
    every = kernels is Kernels.BEST and choice.is_searched is None
    if not libraries or every:
        return families
    others = (family for family in families if family not in libraries)
    if kernels is Kernels.GENERATED:
        return tuple(others)
    if kernels is Kernels.LIBRARY:
        return (*libraries, *(_Elsewhere(family, libraries, machine) for family in others))
    return tuple(
        family
        if family in libraries
        else _Elsewhere(family, libraries, machine, choice.is_searched)
        for family in families
    )


@dataclass(frozen=True)
class _Elsewhere:
    """`family` for groups that no library takes, or that were searched on `machine`."""

    family: KernelFamily
    libraries: tuple[KernelFamily, ...]
    machine: Machine
    is_searched: IsSearched | None = None

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def version(self) -> int:
        return self.family.version

    def match(self, group: FusedOp) -> Candidate | None:
        """As `family` does, where no library has a kernel."""
        return self.family.match(group) if self._is_left(group) else None

    def _is_left(self, group: FusedOp) -> bool:
        if self.is_searched is not None and self.is_searched(group, self.machine):
            return True
        found = (library.match(group) for library in self.libraries)
        return not any(each is not None and each.layouts for each in found)


@cache
def _checked(name: str) -> Backend:
    return checked_backend(name, installed_backend(name))
