"""Simulates a design with Verilator: what it computes, and in how many cycles."""

import ctypes
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid_hls.design import DesignOp, stream_of
from braid.lowering.fpga.design.streams import weights_of
from braid.lowering.fpga.rtl.design_module import design_modules
from braid.lowering.fpga.rtl.harness import SYMBOL, harness
from braid.lowering.fpga.rtl.ports import StreamPort
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.lowering.fpga.rtl.verilate import shared_library
from braid.support.errors import BraidError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stalls:
    """In how many percent of cycles a beat is offered and accepted, at random from `seed`.

    And in how many a memory answers; see `harness`.
    """

    valid: int = 100
    ready: int = 100
    seed: int = 1
    answers: int = 100


@dataclass(frozen=True)
class Simulation:
    """The outputs of a simulation, as tensors of several images, and after how many cycles."""

    outputs: list[Array]
    cycles: int


def loaded(library: bytes) -> ctypes.CDLL:
    """Return the library in this process; no file is left."""
    with tempfile.NamedTemporaryFile(prefix="braid-rtl-", suffix=".so") as file:
        file.write(library)
        file.flush()
        return ctypes.CDLL(file.name)


class VerilatedDesign:
    """A design as a shared library; made once, run often."""

    def __init__(self, design: DesignOp) -> None:
        """Raise UnsupportedError where a tool is missing, BraidError where one fails."""
        block = design.body.block
        self.inputs = [StreamPort(i, stream_of(value)) for i, value in enumerate(block.args)]
        self.outputs = [
            StreamPort(i, stream_of(value)) for i, value in enumerate(design.output.streams)
        ]
        name = design.sym_name.data
        text = system_verilog(design_modules(design))
        driver = harness(name, self.inputs, self.outputs, weights_of(design))
        self._run = loaded(shared_library(name, text, driver))[SYMBOL]
        self._run.restype = ctypes.c_int64

    def run(
        self,
        inputs: Sequence[Array],
        shapes: Sequence[tuple[int, ...]],
        stalls: Stalls | None = None,
        *,
        most_cycles: int = 100_000_000,
    ) -> Simulation:
        """Return outputs of these shapes for inputs, whose first dim may count images.

        Raises BraidError where not all of them have come out after `most_cycles`, and where a
        request to a memory breaks a rule of AXI4.
        """
        stalls = stalls or Stalls()
        given = [port.beats(array) for port, array in zip(self.inputs, inputs, strict=True)]
        taken = [
            port.empty(int(np.prod(shape)) // shape[1])
            for port, shape in zip(self.outputs, shapes, strict=True)
        ]
        cycles = self._run(
            _pointers(given),
            _pointers(taken),
            _counts(given),
            _counts(taken),
            ctypes.c_int64(stalls.valid),
            ctypes.c_int64(stalls.ready),
            ctypes.c_int64(stalls.answers),
            ctypes.c_uint64(stalls.seed),
            ctypes.c_int64(most_cycles),
            None,
        )
        if cycles == -2:
            raise BraidError("the design makes a request that breaks a rule of AXI4")
        if cycles < 0:
            raise BraidError(f"the design has not ended after {most_cycles} cycles")
        outputs = [
            port.tensor(words, shape)
            for port, words, shape in zip(self.outputs, taken, shapes, strict=True)
        ]
        return Simulation(outputs, int(cycles))


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _counts(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_int64 * len(arrays))(*(len(array) for array in arrays))
