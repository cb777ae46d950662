"""Schedules of designs: what choices take, and how folded stages are made."""

import re
from contextlib import suppress

import numpy as np
import pytest

from braid.lowering.fpga.convert.design_of import design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.design.streams import stages_of
from braid.lowering.fpga.schedule.choices import Memory, folds_of
from braid.lowering.fpga.schedule.select import (
    WITHOUT_LIMIT,
    Schedule,
    measured_uses,
    scheduled_design,
    select_schedule,
    select_schedules,
)
from braid.solvers.hls.selection import fits
from braid.support.errors import BraidError
from test.run.fpga.designs import parse, scheduled
from test.run.fpga.test_kernels import MEAN, RESIDUAL, convolution, flattened, matmul

KERNELS = {
    "convolution": convolution(1, (3, 4), (8, 8), pool=True),
    "depthwise": convolution(2, (4, 4), (9, 7), stride=2, groups=4),
    "matmul": matmul(3, 8, 6, 4),
    "equal weights": RESIDUAL,
    "flattened": flattened(5, 4, (5, 4), 6),
    "mean": MEAN,
}


@pytest.mark.parametrize("name", KERNELS)
def test_choices_take_no_less_than_was_counted(name: str) -> None:
    """Choices that the search prunes are never better; multipliers are counted exactly."""
    design = design_of(function_named(parse(KERNELS[name]), "main"), {}).design
    choices, memory = 0, Memory(64, 12)
    for stage in stages_of(design):
        for fold in folds_of(stage, memory):
            found = measured_uses(stage, fold, memory)
            assert (found[4] > 0) == fold.reads
            assert fits(fold.choice.uses, found), (fold, found)
            assert fold.choice.uses[0] == found[0], (fold, found)
            choices += 1
    assert choices > 3


def test_more_slices_are_never_slower_and_the_rest_is_balanced() -> None:
    """The interval falls with the budget, and only the slowest stage needs what it takes."""
    function = function_named(parse(KERNELS["convolution"]), "main")
    cycles: list[int] = []
    for dsp in (3, 5, 9, 20, 60, 200):
        converted, schedule = scheduled(function, {}, dsp)
        cycles.append(schedule.cycles)
        intervals = [stage.loops.iterations for stage in stages_of(converted.design)]
        assert max(intervals) == schedule.cycles
        for stage, folds in zip(stages_of(converted.design), schedule.folds, strict=True):
            assert stage.ii.value.data == np.prod(folds)
    assert cycles == sorted(cycles, reverse=True) and len(set(cycles)) > 3


def test_tables_are_a_limit_too() -> None:
    """With few look-up tables a slower schedule is found, and none with fewer than it needs."""
    text = KERNELS["convolution"]

    def limited(lut: int) -> tuple[int, int]:
        design = design_of(function_named(parse(text), "main"), {}).design
        chosen = select_schedule(design, (60, WITHOUT_LIMIT, lut, *[WITHOUT_LIMIT] * 2))
        assert chosen.resources.lut <= lut
        return chosen.cycles, chosen.lower_bound

    free = limited(WITHOUT_LIMIT)
    design = design_of(function_named(parse(text), "main"), {}).design
    needed = select_schedule(design, (60, *[WITHOUT_LIMIT] * 4)).resources.lut
    assert limited(needed) == free
    with pytest.raises(BraidError, match=r"look-up tables at their smallest, expected at most 10"):
        limited(10)


def test_designs_share_slices_by_what_they_need() -> None:
    """As good as the best division of the part, and a small design takes what it needs, not a
    half."""
    slices = 12

    def chosen(*shares: int) -> list[Schedule]:
        """One share for both, or one for each."""
        designs = [
            design_of(function_named(parse(KERNELS[name]), "main"), {}).design
            for name in ("convolution", "matmul")
        ]
        if len(shares) == 1:
            return select_schedules(designs, (slices, *[WITHOUT_LIMIT] * 4))
        limits = [(share, *[WITHOUT_LIMIT] * 4) for share in shares]
        return [select_schedule(*one) for one in zip(designs, limits, strict=True)]

    both = chosen(slices)
    parted: dict[int, int] = {}
    for share in range(1, slices):
        with suppress(BraidError):
            parted[share] = max(one.cycles for one in chosen(share, slices - share))
    assert sum(one.resources.dsp for one in both) <= slices
    assert max(one.cycles for one in both) == min(parted.values()) < parted[slices // 2]
    assert {one.slowest for one in both} == {one.lower_bound for one in both}
    assert {one.slowest for one in both} == {max(one.cycles for one in both)}
    with pytest.raises(BraidError, match="DSP slices at their smallest, expected at most 1"):
        select_schedules(
            [design_of(function_named(parse(RESIDUAL), "main"), {}).design for _ in range(2)],
            (1, *[WITHOUT_LIMIT] * 4),
        )


def test_what_is_missing_is_named_beside_channels() -> None:
    """A part that has just what the smallest stages need has nothing for channels."""
    design = design_of(function_named(parse(RESIDUAL), "main"), {}).design
    small = [64, *[WITHOUT_LIMIT] * 4]
    small[2] = 0
    with pytest.raises(BraidError, match=r"need \d+ look-up tables .* at most 0"):
        scheduled_design(design, tuple(small))
    small[2] = 400
    with pytest.raises(BraidError, match="at their smallest") as error:
        scheduled_design(design, tuple(small))
    needed, left, channels = map(int, re.findall(r"\d+", error.value.message))
    assert left + channels == small[2] < needed + channels
    select_schedule(design, (64, WITHOUT_LIMIT, needed, WITHOUT_LIMIT, WITHOUT_LIMIT))


def test_a_design_is_scheduled_once() -> None:
    design = scheduled(function_named(parse(KERNELS["matmul"]), "main"), {}, 2)[0].design
    with pytest.raises(BraidError, match="have been folded"):
        select_schedule(design, (2, *[WITHOUT_LIMIT] * 4))
