"""Which folds the stages of a design have: the fastest that a part has resources for."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, i64

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid_hls.body import lanes_of
from braid.dialects.braid_hls.design import DesignOp, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Pair, StageOp
from braid.lowering.fpga.memory_reads import memory_reads, with_banks
from braid.lowering.fpga.rtl.design_module import module_of, resources_of
from braid.lowering.fpga.rtl.resources import Resources
from braid.lowering.fpga.schedule.choices import folds_of, resources_used, uses_of
from braid.lowering.fpga.schedule.fold_stage import folded, terms_of
from braid.lowering.fpga.streams import (
    give_depths,
    network_of,
    stages_of,
    start_depths,
    workers_of,
)
from braid.solvers.hls.selection import (
    Choice,
    Measure,
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

NAMES = ("DSP slices", "halves of block RAMs", "look-up tables", "flip-flops")
"""Of what `uses_of` counts."""
WITHOUT_LIMIT = 1 << 40
"""More than any part has."""


@dataclass(frozen=True)
class Schedule:
    """Folds of each stage, `cycles` of the slowest, and `uses` of all stages.

    No folds that fit have fewer cycles than `lower_bound`; `work_bound` is what follows from the
    work of all stages alone.
    """

    folds: tuple[Pair, ...]
    cycles: int
    lower_bound: int
    work_bound: int
    uses: Uses

    @property
    def resources(self) -> Resources:
        """Of all stages."""
        return resources_used(self.uses)


def budget_of(machine: Machine, share: int = 1) -> Uses:
    """What one of `share` circuits may take of a part."""
    dsp, bram, lut, ff = (machine.fact(name) for name in ("dsp", "bram36", "lut", "ff"))
    return int(dsp) // share, int(2 * bram) // share, int(lut) // share, int(ff) // share


def select_schedule(design: DesignOp, budget: Uses) -> Schedule:
    """Decides, and writes `unroll` on the stages of a design without folds.

    Raises BraidError naming the resource where the stages do not fit at their smallest.
    """
    workers = workers_of(design)
    if any(stage.loops.folds != (1, 1) for stage in stages_of(design)):
        raise BraidError(
            "a design whose stages have been folded",
            hint="'select-hls-schedule' decides on what 'convert-braid-to-hls' makes",
        )
    folds = [folds_of(one) for one in workers]
    choices = [[one.choice for one in own] for own in folds]
    measured: dict[tuple[int, int], Uses] = {}

    def measure(stage: int, choice: int) -> Uses:
        if (stage, choice) not in measured:
            measured[stage, choice] = measured_uses(workers[stage], folds[stage][choice].folds)
        return measured[stage, choice]

    found = fastest_measured(choices, budget, measure)
    if found is None:
        raise _too_small(choices, budget, measure)
    picked = tuple(own[one].folds for own, one in zip(folds, found.picked, strict=True))
    for one, pair in zip(workers, picked, strict=True):
        one.unroll = DenseArrayBase.from_list(i64, unrolled(one, pair))
    return Schedule(
        picked, found.cycles, found.lower_bound, work_bound(choices, budget), found.uses
    )


def scheduled_design(design: DesignOp, budget: Uses) -> tuple[DesignOp, Schedule]:
    """A copy of a design without folds that fits `budget` with its channels, and has their depths.

    Raises as `select_schedule`.
    """
    left = budget
    while True:
        made = design.clone()
        chosen = select_schedule(made, left)
        apply_schedule(made)
        give_depths(made, fewest_depths(network_of(made)).depths)
        over = [
            used - given for used, given in zip(uses_of(resources_of(made)), budget, strict=True)
        ]
        if max(over) <= 0:
            return made, chosen
        left = tuple(given - max(0, more) for given, more in zip(left, over, strict=True))


def unrolled(stage: StageOp | PermuteOp, folds: Pair) -> Pair:
    """Channels, and terms of each, that one iteration computes when so folded again.

    Of a permute in `folds` = (banks, passes) the banks that are read, and lanes that they give.
    """
    if isinstance(stage, PermuteOp):
        return folds[0], stream_of(stage.output).lanes.data // folds[1]
    return lanes_of(stage.value) // folds[0], terms_of(stage) // folds[1]


def measured_uses(stage: StageOp | PermuteOp, folds: Pair) -> Uses:
    """What the module of the folded stage takes."""
    made = with_banks(stage, folds) if isinstance(stage, PermuteOp) else folded(stage, folds)
    uses = uses_of(module_of("stage", made).resources)
    made.erase()
    return uses


def apply_schedule(design: DesignOp) -> None:
    """Folds stages as their `unroll` says; channels get places for what is under way."""
    for one in workers_of(design):
        if one.unroll is None or (isinstance(one, StageOp) and one.loops.folds != (1, 1)):
            continue
        made = _as_decided(one)
        made.unroll = one.unroll
        block = one.parent
        assert block is not None, "stages stand in designs"
        block.insert_op_before(made, one)
        one.output.replace_all_uses_with(made.output)
        block.erase_op(one)
    give_depths(design, start_depths(design))


def _as_decided(op: StageOp | PermuteOp) -> StageOp | PermuteOp:
    if isinstance(op, StageOp):
        return folded(op, _folds(op))
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
    """Raises BraidError for a stage that is not folded as its `unroll` says."""
    for one in workers_of(design):
        now = (1, 1)
        if isinstance(one, PermuteOp):
            now = one.banks.value.data, one.ii.value.data
        if one.unroll is not None and tuple(one.unroll.get_values()) != unrolled(one, now):
            raise BraidError(
                f"stage '{one.label.data}' has a schedule that was not applied",
                location=source_location(one),
                hint="run 'apply-hls-schedule' behind 'select-hls-schedule'",
            )


def _folds(stage: StageOp) -> Pair:
    """Those of `unroll`. Raises BraidError where it does not divide."""
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


def _too_small(choices: Sequence[Sequence[Choice]], budget: Uses, measure: Measure) -> BraidError:
    """Names the resource that is missing."""
    uses = least(choices)
    if fits(uses, budget):
        small = [
            min(range(len(own)), key=lambda at: price(own[at].uses, budget)) for own in choices
        ]
        uses = tuple(
            map(sum, zip(*(measure(at, one) for at, one in enumerate(small)), strict=True))
        )
    name, used, given = max(
        zip(NAMES, uses, budget, strict=True), key=lambda one: one[1] / max(one[2], 1)
    )
    return BraidError(
        f"the stages need {used:,} {name} at their smallest, expected at most {given:,}",
        hint="take a larger part, or split the model over several devices",
    )
