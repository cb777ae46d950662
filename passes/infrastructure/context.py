"""The context that modules are read and compiled in: it knows every installed dialect.

Each dialect is imported when it is first used.
"""

from collections.abc import Callable, Collection

from xdsl.context import Context
from xdsl.ir import Dialect

from braid.analysis.structure.model_context import ModelContext
from braid.passes.infrastructure.registry import installed_universe


def _load_braid() -> Dialect:
    from braid.dialects.braid import Braid

    return Braid


def _load_braid_hls() -> Dialect:
    from braid.dialects.braid_hls import BraidHls

    return BraidHls


def _load_stablehlo() -> Dialect:
    from braid.dialects.stablehlo import Stablehlo

    return Stablehlo


def _load_chlo() -> Dialect:
    from braid.dialects.stablehlo import Chlo

    return Chlo


def _load_linalg() -> Dialect:
    from braid.dialects.linalg import Linalg

    return Linalg


def _load_tosa() -> Dialect:
    from braid.dialects.tosa import Tosa

    return Tosa


DIALECTS: dict[str, Callable[[], Dialect]] = {
    "braid": _load_braid,
    "braid_hls": _load_braid_hls,
}
"""Dialects of this package by name."""

_OVER_XDSL: dict[str, Callable[[], Dialect]] = {
    "chlo": _load_chlo,
    "linalg": _load_linalg,
    "stablehlo": _load_stablehlo,
    "tosa": _load_tosa,
}
"""Dialects of models, some for xDSL's of the same name: not in the entry point, names clash."""


def make_context(*, allow_unregistered: bool = False, without: Collection[str] = ()) -> Context:
    """Return a context that knows the dialects of braid, xDSL and all installed packages.

    `allow_unregistered` accepts ops, attributes and types of unknown dialects, and of those left
    out by `without`. Raises `BraidError` where an installed package is broken.
    """
    context = ModelContext(allow_unregistered=allow_unregistered)
    for name, factory in (installed_universe().all_dialects | _OVER_XDSL | DIALECTS).items():
        if name not in without:
            context.register_dialect(name, factory)
    return context
