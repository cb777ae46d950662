"""Select the folds of a design's stages: the fastest that a part has resources for."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid_hls.body import lanes_of
from braid.dialects.braid_hls.design import DesignOp, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Pair, StageOp
from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.design.memory_reads import memory_reads, with_banks
from braid.lowering.fpga.design.streams import (
    give_depths,
    network_of,
    stages_of,
    start_depths,
    workers_of,
)
from braid.lowering.fpga.rtl.design_module import module_of, resources_of, weights_resources
from braid.lowering.fpga.rtl.resources import Resources
from braid.lowering.fpga.schedule.choices import (
    Fold,
    Memory,
    folds_of,
    resources_used,
    uses_of,
    with_reads,
)
from braid.lowering.fpga.schedule.fold_stage import factors_of, folded, terms_of
from braid.solvers.hls.selection import (
    Selection,
    Uses,
    fastest_measured,
    fits,
    least,
    price,
    work_bound,
)
from braid.solvers.streams.depths import fewest_depths
from braid.support.errors import BraidError
from braid.targets.machines.machine import Machine

NAMES = (
    "DSP slices",
    "halves of block RAMs",
    "look-up tables",
    "flip-flops",
    "bits of memory a cycle",
)
"""The names of the resources that `uses_of` counts."""
TABLES = 2
"""The index of look-up tables, in which weights on chip are stored."""
NOTHING: Uses = (0,) * len(NAMES)
WITHOUT_LIMIT = 1 << 40
"""A limit that is more than any part has."""


@dataclass(frozen=True)
class Schedule:
    """Folds of each stage, `cycles` of the slowest, and `uses` of all stages.

    `reads` says which stages read their factors from memory. `slowest` is the most cycles of a
    stage of all designs that share the budget: no folds that fit make it fewer than `lower_bound`;
    `work_bound` is what follows from the work of all stages alone.
    """

    folds: tuple[Pair, ...]
    reads: tuple[bool, ...]
    cycles: int
    slowest: int
    lower_bound: int
    work_bound: int
    uses: Uses

    @property
    def resources(self) -> Resources:
        """Resources of all stages."""
        return resources_used(self.uses)


def budget_of(machine: Machine) -> Uses:
    """Return the resources of a part."""
    dsp, bram, lut, ff = (machine.fact(name) for name in ("dsp", "bram36", "lut", "ff"))
    memory = 8 * machine.fact("memory_bandwidth", 0) / machine.fact("clock")
    return tuple(int(one) for one in (dsp, 2 * bram, lut, ff, memory))


def memory_of(machine: Machine) -> Memory | None:
    """Return the memory next to a part, if it has one."""
    port = int(machine.fact("memory_port", 0))
    if port == 0:
        return None
    latency = machine.fact("memory_latency") * machine.fact("clock")
    return Memory(port, max(1, ceil(latency)))


def select_schedule(design: DesignOp, budget: Uses, memory: Memory | None = None) -> Schedule:
    """Select the schedule of one design, as `select_schedules` does."""
    (chosen,) = select_schedules([design], budget, memory)
    return chosen


def select_schedules(
    designs: Sequence[DesignOp],
    budget: Uses,
    memory: Memory | None = None,
    kept: Uses = NOTHING,
) -> list[Schedule]:
    """Decide the folds, and write `unroll` on the stages of designs without folds.

    Designs share the budget by need: the slowest stage of all is as fast as possible, since later
    stages wait for it, and the others are as cheap as that permits. Weights are on chip where they
    fit. If they do not fit, or take most of the tables, each stage may read its weights from
    `memory`, if that is faster; its `memory_latency` says so. Raises BraidError naming the resource
    where the stages do not fit at their smallest; `kept` is the channels' share of it.
    """
    every = [workers_of(design) for design in designs]
    if any(stage.loops.folds != (1, 1) for one in designs for stage in stages_of(one)):
        raise BraidError(
            "a design whose stages have been folded",
            hint="'select-hls-schedule' decides on what 'convert-braid-to-hls' makes",
        )
    workers = [one for own in every for one in own]
    search = _FoldSearch(workers, [folds_of(one) for one in workers], budget)
    found = search.found()
    if memory is not None and (found is None or 2 * found.uses[TABLES] > budget[TABLES]):
        other = search.reading(memory)
        read = other.found()
        if found is None or (read is not None and read.cycles < found.cycles):
            search, found = other, read
    if found is None:
        raise _too_small(search, kept)
    bound = work_bound(search.choices, budget)
    made: list[Schedule] = []
    first = 0
    for own in every:
        numbers = range(first, first + len(own))
        first += len(own)
        folds = [search.folds[at][found.picked[at]] for at in numbers]
        _write(own, folds, memory)
        uses = [search.measure(at, found.picked[at]) for at in numbers]
        made.append(
            Schedule(
                tuple(one.folds for one in folds),
                tuple(one.reads for one in folds),
                max(one.choice.cycles for one in folds),
                found.cycles,
                found.lower_bound,
                bound,
                tuple(map(sum, zip(*uses, strict=True))),
            )
        )
    return made


def _write(
    workers: Sequence[StageOp | PermuteOp], folds: Sequence[Fold], memory: Memory | None
) -> None:
    for one, fold in zip(workers, folds, strict=True):
        one.unroll = DenseArrayBase.from_list(i64, unrolled(one, fold.folds))
        if fold.reads and memory is not None and isinstance(one, StageOp):
            one.memory_latency = IntegerAttr(memory.latency, i64)


class _FoldSearch:
    """Choices of folds for each stage, measured where they are picked."""

    def __init__(
        self,
        workers: Sequence[StageOp | PermuteOp],
        folds: Sequence[Sequence[Fold]],
        budget: Uses,
        memory: Memory | None = None,
    ) -> None:
        self.workers, self.folds, self.budget, self.memory = workers, folds, budget, memory
        self.choices = [[one.choice for one in own] for own in folds]
        self.measured: dict[tuple[int, Fold], Uses] = {}

    def reading(self, memory: Memory) -> "_FoldSearch":
        """Return the choices where stages may read their factors; known measurements are kept."""
        folds = [
            with_reads(one, own, memory) for one, own in zip(self.workers, self.folds, strict=True)
        ]
        found = _FoldSearch(self.workers, folds, self.budget, memory)
        found.measured |= self.measured
        return found

    def found(self) -> Selection | None:
        """Return the fastest that fit."""
        return fastest_measured(self.choices, self.budget, self.measure)

    def smallest(self) -> Uses:
        """Return the resources of all stages, each as small as it was seen to be."""
        found: list[Uses] = []
        for stage, own in enumerate(self.choices):
            self.measure(
                stage, min(range(len(own)), key=lambda at: price(own[at].uses, self.budget))
            )
            seen = (uses for (of, _), uses in self.measured.items() if of == stage)
            found.append(min(seen, key=lambda uses: price(uses, self.budget)))
        return tuple(map(sum, zip(*found, strict=True)))

    def measure(self, stage: int, choice: int) -> Uses:
        """Return the resources of a stage's module."""
        fold = self.folds[stage][choice]
        key = stage, fold
        if key not in self.measured:
            self.measured[key] = measured_uses(self.workers[stage], fold, self.memory)
        return self.measured[key]


def scheduled_design(
    design: DesignOp, budget: Uses, memory: Memory | None = None
) -> tuple[DesignOp, Schedule]:
    """Return one design as `scheduled_designs` does."""
    (made,) = scheduled_designs([design], budget, memory)
    return made


def scheduled_designs(
    designs: Sequence[DesignOp], budget: Uses, memory: Memory | None = None
) -> list[tuple[DesignOp, Schedule]]:
    """Copy of designs without folds that fit `budget` with their channels, and have depths.

    Raises as `select_schedules`.
    """
    left = budget
    while True:
        made = [design.clone() for design in designs]
        kept = tuple(given - own for given, own in zip(budget, left, strict=True))
        chosen = select_schedules(made, left, memory, kept)
        for one in made:
            apply_schedule(one)
            give_depths(one, fewest_depths(network_of(one)).depths)
        used = map(sum, zip(*(uses_of(resources_of(one)) for one in made), strict=True))
        over = [own - given for own, given in zip(used, budget, strict=True)]
        if max(over) <= 0:
            return list(zip(made, chosen, strict=True))
        left = tuple(given - max(0, more) for given, more in zip(left, over, strict=True))


def unrolled(stage: StageOp | PermuteOp, folds: Pair) -> Pair:
    """Return the channels, and the terms of each, that one iteration computes if it is folded again
    in this way.

    Of a permute in `folds` = (banks, passes) the banks that are read, and lanes that they give.
    """
    if isinstance(stage, PermuteOp):
        return folds[0], stream_of(stage.output).lanes.data // folds[1]
    return lanes_of(stage.value) // folds[0], terms_of(stage) // folds[1]


def measured_uses(stage: StageOp | PermuteOp, fold: Fold, memory: Memory | None = None) -> Uses:
    """Return the resources of the folded stage's module, with the module that reads its factors."""
    if isinstance(stage, PermuteOp):
        made = with_banks(stage, fold.folds)
        used = module_of("stage", made).resources
        made.erase()
        return uses_of(used)
    if fold.reads and memory is not None:
        stage.memory_latency = IntegerAttr(memory.latency, i64)
    made = folded(stage, fold.folds)
    stage.memory_latency = None
    used = module_of("stage", made).resources
    weights = None if made.weights is None else made.weights.owner
    made.erase()
    if isinstance(weights, WeightsOp):
        used += weights_resources(weights)
        weights.erase()
    return uses_of(used)


def apply_schedule(design: DesignOp) -> None:
    """Fold stages by their `unroll`; channels get slots for values in flight."""
    for one in workers_of(design):
        if one.unroll is None or (isinstance(one, StageOp) and one.loops.folds != (1, 1)):
            continue
        made = _as_decided(one)
        made.unroll = one.unroll
        block = one.parent
        assert block is not None, "stages stand in designs"
        if isinstance(made, StageOp) and made.weights is not None:
            assert isinstance(made.weights.owner, WeightsOp), "that of 'folded'"
            block.insert_op_before(made.weights.owner, one)
        block.insert_op_before(made, one)
        one.output.replace_all_uses_with(made.output)
        block.erase_op(one)
    give_depths(design, start_depths(design))


def _as_decided(op: StageOp | PermuteOp) -> StageOp | PermuteOp:
    if isinstance(op, StageOp):
        if op.memory_latency is not None and factors_of(op) is None:
            raise BraidError(
                f"memory_latency on stage '{op.label.data}', which has no known factors",
                location=source_location(op),
            )
        made = folded(op, _folds(op))
        made.memory_latency = op.memory_latency
        return made
    assert op.unroll is not None
    banks, lanes = op.unroll.get_values()
    beat = stream_of(op.output).lanes.data
    if banks < 1 or lanes < 1 or beat % lanes:
        raise BraidError(
            f"unroll = [{banks}, {lanes}] on a permute, expected banks and a divisor of {beat}",
            location=source_location(op),
        )
    made = with_banks(op, (banks, beat // lanes))
    memory_reads(made)
    return made


def check_applied(design: DesignOp) -> None:
    """Raise BraidError for a stage that is not folded as its `unroll` says."""
    for one in workers_of(design):
        now = (1, 1)
        if isinstance(one, PermuteOp):
            now = one.banks.value.data, one.ii.value.data
        done = not (
            isinstance(one, StageOp) and one.memory_latency is not None and one.weights is None
        )
        if one.unroll is not None:
            done = done and tuple(one.unroll.get_values()) == unrolled(one, now)
        if not done:
            raise BraidError(
                f"stage '{one.label.data}' has a schedule that was not applied",
                location=source_location(one),
                hint="run 'apply-hls-schedule' after 'select-hls-schedule'",
            )


def _folds(stage: StageOp) -> Pair:
    """Return the folds that `unroll` leaves. Raises BraidError where it does not divide."""
    assert stage.unroll is not None
    all_of = stream_of(stage.output).lanes.data, terms_of(stage)
    chosen = stage.unroll.get_values()
    if any(one < 1 or every % one for one, every in zip(chosen, all_of, strict=True)):
        raise BraidError(
            f"unroll = {list(chosen)} on stage '{stage.label.data}', expected divisors of "
            f"{list(all_of)}",
            location=source_location(stage),
        )
    return all_of[0] // chosen[0], all_of[1] // chosen[1]


def _too_small(search: _FoldSearch, kept: Uses) -> BraidError:
    """Return the error that names the missing resource, and the channels' use of it."""
    uses = least(search.choices)
    if fits(uses, search.budget):
        uses = search.smallest()
    name, used, given, channels = max(
        zip(NAMES, uses, search.budget, kept, strict=True), key=lambda one: one[1] / max(one[2], 1)
    )
    beside = f" beside {channels:,} of channels" if channels else ""
    return BraidError(
        f"the stages need {used:,} {name} at their smallest, expected at most {given:,}{beside}",
        hint="take a larger part, or split the model over several devices",
    )
