"""Designs in C++, compiled by the C++ compiler of the machine and run beside it."""

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from braid.dialects.braid_hls.design import DesignOp
from braid.lowering.fpga.cpp.design_text import ports_of, top_name
from braid.lowering.fpga.cpp.project import RUN, project_texts, write_texts
from braid.lowering.fpga.rtl.ports import Array, lanes_of_beats
from braid.support.errors import BraidError


class CompiledDesign:
    """A design that was compiled by `make simulate` of its project."""

    def __init__(self, design: DesignOp) -> None:
        self._ports = ports_of(design)
        self._folder = tempfile.TemporaryDirectory(prefix="braid-hls-")
        folder = Path(self._folder.name)
        write_texts(project_texts(design, "xcu280-fsvh2892-2L-e", 3.33), folder)
        done = subprocess.run(
            ["make", "-s", "-C", str(folder), "simulate"], capture_output=True, text=True
        )
        if done.returncode:
            raise BraidError(f"the C++ of '{top_name(design)}' does not compile: {done.stderr}")
        library = ctypes.CDLL(str(folder / f"lib{top_name(design)}.so"))
        self._run = getattr(library, RUN)

    def run(
        self, inputs: Sequence[Array], shapes: Sequence[tuple[int, ...]], images: int
    ) -> list[Array]:
        """Return outputs of these shapes; the first dimension counts images."""
        given = [np.ascontiguousarray(lanes_of_beats(one).astype(np.int64)) for one in inputs]
        taken = [np.zeros((_beats(shape), shape[1]), np.int64) for shape in shapes]
        pointers = [
            (ctypes.c_void_p * len(side))(*(one.ctypes.data for one in side))
            for side in (given, taken)
        ]
        counts = [
            (ctypes.c_int64 * len(side))(*(len(one) // images for one in side))
            for side in (given, taken)
        ]
        self._run(pointers[0], counts[0], pointers[1], counts[1], ctypes.c_int64(images))
        return [_tensor(one, shape) for one, shape in zip(taken, shapes, strict=True)]


def _beats(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape)) // shape[1]


def _tensor(lanes: Array, shape: tuple[int, ...]) -> Array:
    return np.moveaxis(lanes.reshape((shape[0], *shape[2:], shape[1])), -1, 1)
