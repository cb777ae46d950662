"""What a program finds in `braid_env` and in its own arguments; see the runtime's header."""

from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.dialects.braid.buffer import BufferAttr
from braid.lowering.cpu.program.pointers import POINTER, PointerBuilder

PARALLEL_FOR_OFFSET = 8
NOW_OFFSET = 16
COUNTS_OFFSET = 32
TIMES_OFFSET = 40
POINTER_BYTES = 8


@dataclass(frozen=True)
class Environment:
    """The arguments of the entry point: services, inputs, outputs, weights, arena."""

    env: SSAValue
    inputs: SSAValue
    outputs: SSAValue
    weights: SSAValue
    arena: SSAValue

    def service(self, builder: PointerBuilder, offset: int) -> SSAValue:
        """The pointer in `braid_env` at `offset`."""
        return builder.load(builder.address(self.env, offset), POINTER)


class Buffers:
    """Addresses of buffers, computed once at the entry, where they dominate every use."""

    def __init__(self, environment: Environment, entry: PointerBuilder) -> None:
        self._environment = environment
        self._entry = entry
        self._known: dict[BufferAttr, SSAValue] = {}

    def address(self, buffer: BufferAttr) -> SSAValue:
        """The address of `buffer`."""
        if buffer not in self._known:
            self._known[buffer] = self._compute(buffer)
        return self._known[buffer]

    def _compute(self, buffer: BufferAttr) -> SSAValue:
        environment, offset = self._environment, buffer.offset.data
        match buffer.space.data:
            case "arena":
                return self._entry.address(environment.arena, offset)
            case "weights":
                return self._entry.address(environment.weights, offset)
            case "input":
                slot = self._entry.address(environment.inputs, offset * POINTER_BYTES)
            case _:
                slot = self._entry.address(environment.outputs, offset * POINTER_BYTES)
        return self._entry.load(slot, POINTER)
