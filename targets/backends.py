"""The backends by name: those of all installed packages, braid's own among them."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import cast

from braid.dialects.braid.regions import FusedOp
from braid.support.entry_points import installed_backend, installed_backends, installed_families
from braid.support.errors import BraidError
from braid.targets.backend import Backend
from braid.targets.backend_calls import checked_backend
from braid.targets.kernels.kernel_family import LIBRARY, Candidate, KernelFamily
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device, Target

_HIDDEN = ContextVar("_HIDDEN", default=False)
"""Whether kernel families are left out."""


class Kernels(StrEnum):
    """Whose kernels a model gets.

    Those that braid generates; those of a vendor's library, wherever that has one; or the best of
    both, by what was measured.
    """

    GENERATED = "generated"
    LIBRARY = "library"
    BEST = "best"


_KERNELS = ContextVar("_KERNELS", default=Kernels.GENERATED)


def backend(name: str) -> Backend:
    """The backend that makes code under this name, see `targets/backend.py`.

    Raises `BraidError` where no installed package has it, two have it, or it cannot be loaded.
    """
    return _checked(name)


def backend_names() -> tuple[str, ...]:
    """The names of all backends that are installed, sorted."""
    return installed_backends()


def has_all_backends(target: Target) -> bool:
    """Whether the backends of all its devices are installed."""
    return {device.backend for device in target.devices} <= set(backend_names())


def kernel_families(device: Device) -> tuple[KernelFamily, ...]:
    """The kernel families of the backend of `device` for its machine, in order of preference.

    Those that installed packages add to it (entry points `braid.kernel_families.NAME`) stand
    first. There are none inside of `without_families`. Raises `BraidError` as `backend`, and where
    a family cannot be loaded.
    """
    if _HIDDEN.get():
        return ()
    return _families(device, device.machine, _KERNELS.get())


@contextmanager
def without_families() -> Generator[None]:
    """Let backends have no kernel families, so that all code is that of the generic lowering."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@contextmanager
def kernels_from(kernels: str) -> Generator[None]:
    """Let kernels be whose `Kernels` says. Raises `BraidError` where it does not say that."""
    if kernels not in list(Kernels):
        raise BraidError(f"kernels are {kernels!r}, expected one of {', '.join(Kernels)}")
    token = _KERNELS.set(Kernels(kernels))
    try:
        yield
    finally:
        _KERNELS.reset(token)


def kernels_chosen() -> Kernels:
    """What the innermost `kernels_from` says, by default generated ones."""
    return _KERNELS.get()


@cache
def _families(device: Device, machine: Machine, kernels: Kernels) -> tuple[KernelFamily, ...]:
    """Made once for what is known of the machine, since families remember what they searched."""
    added = cast(tuple[KernelFamily, ...], installed_families(device.backend, machine))
    families = tuple(backend(device.backend).families(device, added))
    library = next((family for family in families if family.name == LIBRARY), None)
    if library is None or kernels is Kernels.BEST:
        return families
    others = (family for family in families if family is not library)
    if kernels is Kernels.GENERATED:
        return tuple(others)
    return (library, *(_Elsewhere(family, library) for family in others))


@dataclass(frozen=True)
class _Elsewhere:
    """`family` for the groups that `library` does not take."""

    family: KernelFamily
    library: KernelFamily

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def version(self) -> int:
        return self.family.version

    def match(self, group: FusedOp) -> Candidate | None:
        """As `family` does, where the library has no kernel."""
        return self.family.match(group) if self._is_left(group) else None

    def _is_left(self, group: FusedOp) -> bool:
        found = self.library.match(group)
        return found is None or not found.layouts


@cache
def _checked(name: str) -> Backend:
    return checked_backend(name, installed_backend(name))
