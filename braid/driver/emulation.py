"""Emulating what is missing: backends that are not installed, and devices that are not here."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from braid.targets.backends import stand_ins

ALWAYS = "BRAID_EMULATE"
"""The environment variable that asks for it everywhere, as in the runtime: neither empty nor 0."""


@contextmanager
def emulating_backends(wanted: bool) -> Generator[None]:
    """Let the host stand in for backends that are not installed, if `wanted` here or always."""
    if not wanted and os.environ.get(ALWAYS, "0") in ("", "0"):
        yield
        return
    from braid.lowering.emulated.backend import EmulatedBackend  # seldom needed

    with stand_ins(EmulatedBackend):
        yield
