"""Roots of unity that a kernel reads: one array in its module, whose numbers were computed in
f64."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import MemRefType, StringAttr, UnitAttr
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import dense_from_numpy, to_numpy
from braid.dialects.braid.fourier_tables import Complexes
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.fourier.complex_numbers import Complex
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index

_NAME = "roots"


@dataclass
class Tables:
    """Numbers of `type`, which are added before code reads them."""

    type: Attribute
    parts: list[npt.NDArray[np.float64]] = field(default_factory=list[npt.NDArray[np.float64]])
    count: int = 0

    def add(self, values: Complexes) -> int:
        """Return where values are that are read one by one: real and imaginary parts in turn."""
        flat = values.reshape(-1)
        return self._append(np.stack([flat.real, flat.imag], axis=-1).reshape(-1))

    def add_rows(self, values: Complexes) -> int:
        """Return where the values `[rows, positions]` are that are read as vectors: for each row
        the real parts, then the imaginary ones.
        """
        return self._append(np.stack([values.real, values.imag], axis=1).reshape(-1))

    def _append(self, numbers: npt.NDArray[np.float64]) -> int:
        begin = self.count
        self.parts.append(numbers)
        self.count += len(numbers)
        return begin

    def declared(self, lanes: int) -> memref.GlobalOp:
        """Return the array, at whose end whole vectors may be read."""
        dtype = to_numpy(self.type)
        numbers = np.concatenate([*self.parts, np.zeros(lanes)]).astype(dtype)
        name, is_private = StringAttr(_NAME), StringAttr("private")
        values = dense_from_numpy(numbers)
        return memref.GlobalOp.get(name, self._memref(lanes), values, is_private, UnitAttr())

    def buffer(self, e: Emitter) -> Buffer:
        """Return the array as code reads it."""
        return Buffer(e.insert(memref.GetGlobalOp(_NAME, self._memref(e.lanes))), self.type)

    def _memref(self, lanes: int) -> MemRefType[Attribute]:
        return MemRefType(self.type, [self.count + lanes])


def single(e: Emitter, table: Buffer, at: Index) -> Complex:
    """Return one of the numbers that `Tables.add` added, in every lane."""
    return Complex(table.splat(e, at), table.splat(e, e.add(at, 1)))


def several(e: Emitter, table: Buffer, at: Index, places: int) -> Complex:
    """Return a vector of those that `Tables.add_rows` added, whose rows have this many places."""
    return Complex(table.load(e, at), table.load(e, e.add(at, places)))
