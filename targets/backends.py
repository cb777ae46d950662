"""The backends by name: those of all installed packages, braid's own among them."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import cast

from braid.support.entry_points import installed_backend, installed_backends, installed_families
from braid.targets.backend import Backend
from braid.targets.backend_calls import checked_backend
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device, Target

_HIDDEN = ContextVar("_HIDDEN", default=False)
"""Whether kernel families are left out."""


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
    return _families(device, device.machine)


@contextmanager
def without_families() -> Generator[None]:
    """Let backends have no kernel families, so that all code is that of the generic lowering."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@cache
def _families(device: Device, machine: Machine) -> tuple[KernelFamily, ...]:
    """Made once for what is known of the machine, since families remember what they searched."""
    added = cast(tuple[KernelFamily, ...], installed_families(device.backend, machine))
    return tuple(backend(device.backend).families(device, added))


@cache
def _checked(name: str) -> Backend:
    return checked_backend(name, installed_backend(name))
