"""Calls one kernel on numpy arrays: for tests and for measuring schedules."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid.buffer import ALIGNMENT
from braid.lowering.host.codegen.compiler import compile_kernel
from braid.lowering.host.codegen.loaded_code import LoadedCode, load_objects
from braid.support.shared_objects import need_libraries
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, Size
from braid.support.tile_permission import may_use_tiles
from braid.targets.kernels.kernel_family import Kernel

Array = npt.NDArray[Any]


class LoadedKernel:
    """A kernel's object code loaded into this process."""

    def __init__(
        self,
        object_code: bytes,
        symbol: str,
        grid: Extent,
        scratch_bytes: Extent,
        libraries: Sequence[str] = (),
        sizes: Sequence[Size] = (),
    ) -> None:
        """Load code whose `grid`, `scratch_bytes`, `libraries` and `sizes` are those of `Kernel`.

        Raises BraidError where a library is not there.
        """
        need_libraries(libraries, f"kernel '{symbol}'")
        may_use_tiles()  # the kernel may ask for them, and a process has to
        self._code: LoadedCode = load_objects([object_code])
        self._address = self._code.address(symbol)
        self.grid = grid
        self.scratch_bytes = scratch_bytes
        own = scratch_bytes + ALIGNMENT if isinstance(scratch_bytes, int) else 0
        self.scratch = np.empty(own, np.uint8)
        """The memory that the kernel uses during a call; its bytes are arbitrary before each."""
        self._sizes = sizes

    def __call__(
        self,
        *arrays: Array,
        begin: int = 0,
        end: int | None = None,
        symbols: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Compute iterations [begin, end), by default all of them, with `symbols` for open dims.

        `arrays` are the operands and the results as stored (physical shapes, C order); the
        results are written.
        """
        self.bound(*arrays, begin=begin, end=end, symbols=symbols)()

    def bound(
        self,
        *arrays: Array,
        begin: int = 0,
        end: int | None = None,
        symbols: Mapping[str, int] = MappingProxyType({}),
    ) -> Callable[[], None]:
        """Return the call with its arguments converted once, for measuring."""
        pointers = [array.ctypes.data for array in arrays]
        if self.scratch_bytes != 0:
            bytes = evaluate(self.scratch_bytes, symbols) + ALIGNMENT
            if self.scratch.nbytes < bytes:
                self.scratch = np.empty(bytes, np.uint8)
            start = self.scratch.ctypes.data
            pointers.append(start + -start % ALIGNMENT)
        last = evaluate(self.grid, symbols) if end is None else end
        numbers = [begin, last, *(evaluate(size, symbols) for size in self._sizes)]
        kinds = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64] * len(numbers)
        function = ctypes.CFUNCTYPE(None, *kinds)(self._address)
        arguments = [*map(ctypes.c_void_p, pointers), *map(ctypes.c_int64, numbers)]

        def call(alive: object = (self, arrays)) -> None:
            function(*arguments)

        return call


class CallableKernel(LoadedKernel):
    """A kernel compiled for the host and loaded into this process."""

    def __init__(self, kernel: Kernel) -> None:
        """Compile `kernel`. Raises BraidError as `compile_kernel` does."""
        code = compile_kernel(kernel)
        super().__init__(
            code,
            kernel.symbol,
            kernel.grid,
            kernel.scratch_bytes,
            kernel.libraries,
            kernel.sizes,
        )


def call_kernel(kernel: Kernel, arrays: Sequence[Array]) -> None:
    """Compile `kernel` and run all of it on `arrays`, see `CallableKernel`."""
    for array in arrays:
        assert array.flags.c_contiguous, "kernels take arrays in C order"
    CallableKernel(kernel)(*arrays)
