"""The universe that xDSL's entry point `xdsl.universe` finds; loaded only when it is used."""

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _dialect() -> Dialect:
    from braid_toy.dialect import Toy

    return Toy


def _fuse_rms_norm() -> type[ModulePass]:
    from braid_toy.fuse_rms_norm import FuseRmsNormPass

    return FuseRmsNormPass


UNIVERSE = Universe(all_dialects={"toy": _dialect}, all_passes={"fuse-rms-norm": _fuse_rms_norm})
"""The entry point."""
