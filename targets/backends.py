"""The backends by name: those of all installed packages, including braid's."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from braid.dialects.braid.regions import FusedOp
from braid.support.entry_points import (
    EMULATED,
    installed_backend,
    installed_backends,
    installed_families,
)
from braid.support.settings import DEFAULTS, Kernels, Settings
from braid.targets.backend import Backend, Job, KernelMeter
from braid.targets.backend_answers import checked_backend
from braid.targets.kernels.group_matches import asked
from braid.targets.kernels.kernel_family import (
    LIBRARIES,
    Candidate,
    KernelFamily,
    OpenCandidate,
)
from braid.targets.kernels.searched_groups import was_searched
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device, Target


def backend(name: str, settings: Settings = DEFAULTS) -> Backend:
    """Return the backend that makes code under this name, see `targets/backend.py`.

    Depending on `settings`, the result is the host's stand-in if no installed package has the
    backend. Raises `BraidError` if no package has it, two packages have it, or it cannot be loaded.
    """
    return _checked(EMULATED if _is_stood_for(name, settings) else name)


def backend_of(device: Device) -> Backend:
    """Return the backend that makes the code of `device`. Raises BraidError as `backend`."""
    return backend(device.backend, device.settings)


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends that are installed, sorted."""
    return installed_backends()


def has_all_backends(target: Target) -> bool:
    """Return whether the backends of all its devices exist, including stand-ins."""
    known = set(backend_names())
    return target.settings.emulate or {d.backend for d in target.devices} <= known


def is_launched(target: Target, devices: Iterable[str]) -> bool:
    """Return whether a model that runs on `devices` launches functions, and is not one program.

    A device that the host stands in for is launched: it is as slow as its target says.
    """
    names = set(devices)
    return target.is_launched(names) or any(
        _is_stood_for(target.device(name).backend, target.settings) for name in names
    )


def kernel_families(device: Device) -> tuple[KernelFamily, ...]:
    """Return the kernel families of the backend of `device` for its machine, in order of
    preference.

    Families that installed packages add to it (entry points `braid.kernel_families.NAME`) come
    first. The result is empty if the settings of the device say `generic`. Raises `BraidError` as
    `backend`, and where a family cannot be loaded.
    """
    if device.settings.kernels is Kernels.GENERIC:
        return ()
    if _is_stood_for(device.backend, device.settings):
        # Extensions of a missing backend need not fit its stand-in.
        return tuple(backend_of(device).families(device, ()))
    return _families(device, device.machine)


def meter_of(job: Job) -> AbstractContextManager[KernelMeter] | None:
    """Return the meter of kernels on the device of `job`; None if its backend has none.

    Raises BraidError as `backend` and `Backend.meter`.
    """
    return None if _has_no_families(job.device) else backend(job.device.backend).meter(job)


def grouping_of(device: Device) -> Backend | None:
    """Return the backend that makes other groups of what `device` runs; None where it takes
    fusion's.

    Raises BraidError as `backend`.
    """
    own = None if _has_no_families(device) else backend(device.backend)
    return own if own is not None and own.schedule_pass else None


def _is_stood_for(name: str, settings: Settings) -> bool:
    return settings.emulate and name not in backend_names()


def _has_no_families(device: Device) -> bool:
    is_generic = device.settings.kernels is Kernels.GENERIC
    return is_generic or _is_stood_for(device.backend, device.settings)


@cache
def _families(device: Device, machine: Machine) -> tuple[KernelFamily, ...]:
    """Return families, made once for each machine, since they remember what they searched."""
    settings = device.settings
    added = cast(tuple[KernelFamily, ...], installed_families(device.backend, machine))
    families = tuple(backend(device.backend).families(device, added))
    if settings.is_strict:
        families = tuple(family for family in families if not asked(family).is_approximate)
    libraries = tuple(family for family in families if family.name in LIBRARIES)
    kernels = settings.kernels
    every = kernels is Kernels.BEST and not settings.library_on_miss
    if not libraries or every:
        return families
    others = (family for family in families if family not in libraries)
    if kernels is Kernels.GENERATED:
        return tuple(others)
    if kernels is Kernels.LIBRARY:
        return (*libraries, *(_elsewhere(family, libraries, machine) for family in others))
    return tuple(
        family if family in libraries else _elsewhere(family, libraries, machine, True)
        for family in families
    )


def _elsewhere(
    family: KernelFamily, libraries: tuple[KernelFamily, ...], *others: Any
) -> KernelFamily:
    return _Elsewhere(family.name, family.version, family, libraries, *others)


@dataclass(frozen=True)
class _Elsewhere(KernelFamily):
    """`family` for groups that no library takes and, if `or_searched`, those with a record."""

    name: str
    version: int
    family: KernelFamily
    libraries: tuple[KernelFamily, ...]
    machine: Machine
    or_searched: bool = False

    def match(self, group: FusedOp) -> Candidate[Any] | None:
        """Match as `family` does, where no library has a kernel."""
        return asked(self.family, group).match(group) if self._is_left(group) else None

    def match_open(self, group: FusedOp) -> OpenCandidate | None:
        """Match as `family` does: what is left to it was asked at likely sizes."""
        return asked(self.family, group).match_open(group)

    def _is_left(self, group: FusedOp) -> bool:
        if self.or_searched and was_searched(group, self.machine):
            return True
        found = (library.match(group) for library in self.libraries)
        return not any(each is not None and each.layouts for each in found)


@cache
def _checked(name: str) -> Backend:
    return checked_backend(name, installed_backend(name))
