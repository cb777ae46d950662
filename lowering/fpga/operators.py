"""Read from the files of facts which operators tools for high-level synthesis build."""

import tomllib
from importlib.resources import files

from braid.solvers.hls.schedule import Operators


def vitis_operators() -> Operators:
    """Return the operators of Vitis HLS at 300 MHz on UltraScale+; the file gives the source of
    each number.
    """
    path = files("braid.targets.machines") / "facts" / "vitis-hls.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    cycles = table["cycles"]
    cycles["carried"] = tuple(cycles["carried"])
    return Operators(latencies=table["latencies"], dsps=table["dsps"], **cycles)
