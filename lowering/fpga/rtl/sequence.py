"""Numbers that follow each other step by step: a register that is added to, or a table."""

from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits
from braid.solvers.hls.banks import Integers, Loops, loops_of


class Sequences:
    """Wires that take the next value of their sequence after each `step`; equal ones are made
    once."""

    def __init__(self, module: HardwareModule, step: Wire) -> None:
        self._module = module
        self._step = step
        self._made: dict[tuple[bytes, int], Wire] = {}
        self._counters: dict[tuple[str, int], tuple[Wire, Wire, Wire]] = {}

    def wire(self, numbers: Integers, bits: int) -> Wire:
        """Return unsigned numbers of `bits` bits, each in the cycle after the one before."""
        key = numbers.tobytes(), bits
        if key not in self._made:
            self._made[key] = self._new(numbers, bits)
        return self._made[key]

    def _new(self, numbers: Integers, bits: int) -> Wire:
        if bool((numbers == numbers[0]).all()):
            return self._module.constant(int(numbers[0]), bits)
        loops = loops_of(numbers)
        if loops is not None:
            return self._register(loops, bits)
        index = self._counter(self._step, numbers.size)[0]
        return self._module.table(index, [int(one) for one in numbers], bits)

    def _counter(self, step: Wire, extent: int) -> tuple[Wire, Wire, Wire]:
        """Add a counter; return its value, whether it is the last, and the step of the counter
        around it.
        """
        key = step.name, extent
        if key not in self._counters:
            value, last = self._module.counter(extent, step, "loop")
            self._counters[key] = value, last, self._module.apply("and", step, last)
        return self._counters[key]

    def _register(self, loops: Loops, bits: int) -> Wire:
        """Add a register to which each step adds the distance from the inner loops' last round to
        the next.
        """
        module = self._module
        if loops == Loops(0, loops.extents[:1], (1,)) and index_bits(loops.extents[0]) == bits:
            return self._counter(self._step, loops.extents[0])[0]
        value = Wire(module.name_for("sequence"), bits)
        after = module.constant(loops.start, bits)
        ended = module.constant(1, 1)
        adds: list[tuple[Wire, int]] = []
        step, back = self._step, 0
        for extent, stride in zip(reversed(loops.extents), reversed(loops.strides), strict=True):
            adds.append((ended, stride - back))
            back += (extent - 1) * stride
            _, last, step = self._counter(step, extent)
            ended = module.apply("and", ended, last)
        amount = module.constant(adds[0][1], bits)
        for holds, number in adds[1:]:
            amount = module.mux(holds, module.constant(number, bits), amount)
        following = module.mux(ended, after, module.apply("add", value, amount))
        module.define_register(value, following, self._step, reset=loops.start)
        return value
