"""Read `braid_env` and the arguments of a program; see the runtime's header."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.lowering.host.pointers import POINTER, PointerBuilder
from braid.support.errors import UnsupportedError

PARALLEL_FOR_OFFSET = 8
FAIL_OFFSET = 24
COUNTS_OFFSET = 32
POST_OFFSET = 64
WAIT_OFFSET = 72
RUN_INTER_OP_OFFSET = 80
SUBMIT_OFFSET = 88
FINISH_OFFSET = 96
IS_STOPPED_OFFSET = 104
SIZES_OFFSET = 120
EXPANDED_OFFSET = 128
CLOCK_OFFSET = 136
RECORD_OFFSET = 144


@dataclass(frozen=True)
class Environment:
    """The arguments of the entry point: services, inputs, outputs, weights, arena."""

    env: SSAValue
    inputs: SSAValue
    outputs: SSAValue
    weights: SSAValue
    arena: SSAValue

    def service(self, builder: PointerBuilder, offset: int) -> SSAValue:
        """Return the pointer in `braid_env` at `offset`."""
        return builder.load(builder.address(self.env, offset), POINTER)

    def goes_on(self, builder: PointerBuilder) -> SSAValue:
        """Emit a poll of the interruption callback; the result is an i1, true to continue."""
        is_stopped = self.service(builder, IS_STOPPED_OFFSET)
        stopped = builder.call_pointer(is_stopped, [self.env], i32)
        assert stopped is not None
        zero = builder.emit(arith.ConstantOp.from_int_and_width(0, 32))
        return builder.emit(arith.CmpiOp(stopped, zero, "eq"))


class Buffers:
    """Addresses of buffers, computed once at the entry, where they dominate every use."""

    def __init__(
        self,
        environment: Environment,
        entry: PointerBuilder,
        offset: Callable[[int], SSAValue],
    ) -> None:
        """Take `offset`, which gives the place in the arena of a buffer placed at run time."""
        self._environment = environment
        self._entry = entry
        self._offset = offset
        self._known: dict[BufferAttr, SSAValue] = {}

    def address(self, buffer: BufferAttr) -> SSAValue:
        """Return the address of `buffer`."""
        if buffer not in self._known:
            self._known[buffer] = self._compute(buffer)
        return self._known[buffer]

    def _compute(self, buffer: BufferAttr) -> SSAValue:
        space, _, number = buffer.space.data.partition(":")
        base = self._base(space, number)
        return self._entry.address(base, buffer.offset.data)

    def _base(self, space: str, number: str) -> SSAValue:
        """Return the address of the first byte of a memory space."""
        environment = self._environment
        match space, number:
            case "arena", "":
                return environment.arena
            case "arena", memory:
                raise UnsupportedError(f"a program on the CPU has no access to memory '{memory}'")
            case "open", _:
                return self._entry.address_at(environment.arena, self._offset(int(number)))
            case "weights", _:
                return environment.weights
            case "expanded", _:
                key = BufferAttr.of("expanded")
                if key not in self._known:
                    self._known[key] = environment.service(self._entry, EXPANDED_OFFSET)
                return self._known[key]
            case "output", _ if number.endswith(":aligned"):
                key = BufferAttr.of(f"output:{number}")
                if key not in self._known:
                    output = BufferAttr.of(f"output:{number.removesuffix(':aligned')}")
                    self._known[key] = self._aligned(output)
                return self._known[key]
            case _:
                slots = environment.inputs if space == "input" else environment.outputs
                key = BufferAttr.of(f"{space}:{number}")
                if key not in self._known:
                    self._known[key] = self._entry.load_pointer(slots, int(number))
                return self._known[key]

    def _aligned(self, buffer: BufferAttr) -> SSAValue:
        """Return the first aligned address in a buffer."""
        entry, first = self._entry, self.address(buffer)
        address = entry.emit(llvm.PtrToIntOp(first, i64))
        backwards = entry.emit(arith.SubiOp(entry.constant(0), address))
        skipped = entry.emit(arith.AndIOp(backwards, entry.constant(ALIGNMENT - 1)))
        return entry.address_at(first, skipped)
