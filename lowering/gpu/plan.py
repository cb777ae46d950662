"""The plan of a GPU's functions: what each launches, as data that the device plugin reads.

The format is described in the runtime's `src/cuda/plan.h`.
"""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.attribute_names import SCRATCH_BUFFER
from braid.dialects.braid.buffer import BufferAttr
from braid.lowering.gpu.launch.launches import Launch, Launches
from braid.lowering.host.device_plan import Place, PlannedFunction, text, words

MAGIC = b"RAIDPLAN"
VERSION = 2
_LAUNCH, _COPY = 0, 1
_ADDRESS, _TENSOR_MAP = 0, 1
_NUMBERS = {"u8": 0, "s8": 0, "s32": 3, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}
"""The numbers of `CUtensorMapDataType`; bytes have no sign there."""
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""The numbers of `CUtensorMapSwizzle`."""


def plan_bytes(functions: Sequence[FuncOp], kernels: Mapping[str, Launches]) -> bytes:
    """Return the plan of functions whose memory is planned; `kernels` are those they call, by
    symbol.

    Raises UnsupportedError for a function with control flow, which only the host can run.
    """
    planned = [_Function(function, kernels).plan() for function in functions]
    return b"".join((MAGIC, words(VERSION, len(functions)), *planned))


class _Function(PlannedFunction):
    """A function whose calls are launches of kernels."""

    def __init__(self, function: FuncOp, kernels: Mapping[str, Launches]) -> None:
        super().__init__(function, device="GPU", copy=_COPY)
        self._kernels = kernels

    def calls(self, op: func.CallOp) -> Iterator[bytes]:
        places = [self.places[value] for value in (*op.operands, *op.results)]
        scratch = op.attributes.get(SCRATCH_BUFFER)
        if isinstance(scratch, BufferAttr):
            places.append(self.place_of(scratch))
        kernel = self._kernels[op.callee.root_reference.data]
        return (_launch(launch, kernel, places) for launch in kernel.launches)


def _launch(launch: Launch, kernel: Launches, places: Sequence[Place]) -> bytes:
    arguments = [
        word
        for number in launch.arguments
        for word in (_ADDRESS, *places[number], kernel.buffer_bytes[number])
    ]
    for map in launch.tensor_maps:
        place, size = places[map.argument], kernel.buffer_bytes[map.argument]
        dims = (*map.extents, *map.strides, *map.box)
        about = (_NUMBERS[map.number], len(map.extents), _SWIZZLES[map.swizzle])
        arguments += [_TENSOR_MAP, *place, size, *about, *dims]
    count = len(launch.arguments) + len(launch.tensor_maps)
    return b"".join(
        [
            words(_LAUNCH),
            text(launch.entry),
            text(launch.unaligned_entry or launch.entry),
            words(launch.blocks, launch.threads, launch.shared_bytes, count),
            words(*arguments),
        ]
    )
