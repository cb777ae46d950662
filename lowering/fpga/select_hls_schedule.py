"""`select-hls-schedule`: how much of an output each stage of a design computes in a cycle."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid_hls.design import DesignOp
from braid.lowering.fpga.part import part_of
from braid.lowering.fpga.schedule.choices import Memory
from braid.lowering.fpga.schedule.select import (
    WITHOUT_LIMIT,
    Schedule,
    budget_of,
    memory_of,
    select_schedules,
)
from braid.solvers.hls.selection import Uses
from braid.support.errors import BraidError


@dataclass(frozen=True)
class SelectHlsSchedulePass(ModulePass):
    """Writes `unroll` = (channels, terms of each) on the stages of all designs: what an iteration
    computes.

    In: designs as `convert-braid-to-hls` makes them. A stage that computes all of an output at once
    takes an iteration for it, and one that computes a k-th takes k, with a k-th of the multipliers.
    Of all divisors it chooses those for which the slowest stage has the fewest iterations and all
    stages fit the target's FPGA; of these the cheapest, since a stage that is faster than the
    slowest waits. The same holds for stages of all designs of a module, which divide the part by
    their needs. `dsp`, `bram36`, `lut` and `ff` give other limits than the part; of a target
    without an FPGA they are the only ones. Weights that do not fit are read from the memory of the
    target, or from one that `memory` = most bits in a cycle gives, which answers after
    `memory_latency` cycles: `memory_latency` on a stage says so. A remark says cost, bound, gap and
    uses. Raises BraidError where there are no limits, and where a design exceeds them at its
    smallest.

    ```mlir
    braid_hls.stage(%x) {unroll = array<i64: 2, 9>, …}
    ```
    """

    name = "select-hls-schedule"

    target: str | None = None
    dsp: int | None = None
    bram36: int | None = None
    lut: int | None = None
    ff: int | None = None
    memory: int | None = None
    memory_latency: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for each design."""
        designs = [design for design in op.ops if isinstance(design, DesignOp)]
        if designs:
            every = select_schedules(designs, self._budget(op), self._memory(op))
            for design, chosen in zip(designs, every, strict=True):
                _say(design, chosen, len(designs))

    def _memory(self, module: ModuleOp) -> Memory | None:
        machine = part_of(module, self.target)
        own = None if machine is None else memory_of(machine)
        own = own or Memory(0, 1)
        port = own.port if self.memory is None else self.memory
        latency = own.latency if self.memory_latency is None else self.memory_latency
        if latency < 1:
            raise BraidError(f"memory_latency = {latency}, expected at least 1 cycle")
        return Memory(min(port, 1024), latency) if port else None

    def _budget(self, module: ModuleOp) -> Uses:
        machine = part_of(module, self.target)
        halves = None if self.bram36 is None else 2 * self.bram36
        given = (self.dsp, halves, self.lut, self.ff, self.memory)
        if machine is None and all(one is None for one in given):
            raise BraidError(
                "a schedule of a design for a target without an FPGA",
                hint="give the pass an option target=fpga-zynq7020, or limits such as dsp=64",
            )
        part = (WITHOUT_LIMIT,) * 5 if machine is None else budget_of(machine)
        return tuple(own if one is None else one for one, own in zip(given, part, strict=True))


def _say(design: DesignOp, chosen: Schedule, designs: int) -> None:
    used = chosen.resources
    reads = sum(chosen.reads)
    memory = f"; {reads} stages read weights, {used.memory} bits a cycle" if reads else ""
    name = own = ""
    if designs > 1:
        name = f"{design.sym_name.data}: "
        own = f"; the slowest of {designs} designs that share with {chosen.slowest}"
    emit_remark(
        design,
        SelectHlsSchedulePass.name,
        f"{name}{len(chosen.folds)} stages, the slowest with {chosen.cycles} iterations{own}, "
        f"at least {chosen.lower_bound} with these resources; "
        f"{used.dsp} DSP slices, {used.bram36:g} block RAMs, {used.lut} look-up tables and "
        f"{used.ff} flip-flops{memory}",
        cost=chosen.slowest,
        lower_bound=chosen.lower_bound,
        gap=(chosen.slowest - chosen.lower_bound) / chosen.slowest,
        work_bound=chosen.work_bound,
        cycles=chosen.cycles,
        dsp=used.dsp,
        bram36=used.bram36,
        lut=used.lut,
        ff=used.ff,
        memory=used.memory,
    )
