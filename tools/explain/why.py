"""The whole story of one op or tensor, as lines of text and tables, and as data."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from braid.analysis.diagnostics.remarks import Remark
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError, did_you_mean
from braid.tools.explain.assembly import KernelCode
from braid.tools.explain.document import kernel_data
from braid.tools.explain.history import Change, History
from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.model_page import ModelPage
from braid.tools.explain.quantities import format_seconds
from braid.tools.explain.views import Block, MemoryPlan, Table

_SHOWN = 160
"""Characters of a line of IR that are printed."""


@dataclass(frozen=True)
class Story:
    """A name of the model, with the known facts about it and about all names that it represents.

    `changes` are those of its ops, with the remarks of passes about it; `blocks` is where
    it lies in memory, in a plan whose arena has a bound; `code` is that of its kernels where
    that was asked for.
    """

    name: str
    names: tuple[str, ...]
    free: str
    changes: tuple[Change, ...]
    remarks: tuple[Remark, ...]
    kernels: tuple[KernelRow, ...]
    blocks: tuple[Block, ...]
    plan: MemoryPlan
    bound: int
    seconds: float
    code: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return the story as JSON has it."""
        return {
            "name": self.name,
            "ops": list(self.names),
            "without_kernel": self.free or None,
            "changes": [asdict(change) for change in self.changes],
            "remarks": [remark.to_json() for remark in self.remarks],
            "kernels": [kernel_data(row, self.seconds) for row in self.kernels],
            "memory": [asdict(block) for block in self.blocks],
            "arena_bytes": self.plan.arena,
            "arena_lower_bound": self.bound,
            "code": list(self.code),
        }


def names_behind(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names of ops that are `name`, or parts of it.

    Raises:
        BraidError: no op of the model has the name.

    """
    found = tuple(each for each in known if each == name or each.startswith(f"{name}/"))
    if not found:
        raise BraidError(
            f"no op or tensor of the model is called '{name}'",
            hint=did_you_mean(name, known) or "braid inspect lists the names of ops",
        )
    return found


def story_of(name: str, names: tuple[str, ...], page: ModelPage, history: History) -> Story:
    """Return the story of `name`, which represents `names`, from the notes of a walk."""
    wanted = set(names)
    whole = page.walk.whole
    assert whole is not None
    plan = page.memory.view().plans[-1]
    kernels = tuple(row for row in page.kernels if wanted & set(row.ops))
    remarks = (each for each in page.walk.remarks if any(_speaks_of(each, n) for n in names))
    return Story(
        name,
        names,
        next((why for ops, why in whole.free if wanted & set(ops)), ""),
        history.of(names),
        tuple(remarks),
        kernels,
        tuple(block for block in plan.blocks if wanted & set(block.label.split(", "))),
        plan,
        (page.memory.after or page.memory.before).report.lower_bound,
        page.data["summary"]["seconds"],
        tuple(dict.fromkeys(_code_of(whole.code, kernels))),
    )


def _code_of(code: KernelCode, kernels: Sequence[KernelRow]) -> Iterator[str]:
    for row in kernels:
        if row.ops in code.symbols:
            yield code.texts[code.symbols[row.ops]]


def _speaks_of(remark: Remark, name: str) -> bool:
    return f"'{name}'" in remark.message


def lines_of(story: Story) -> Iterator[tuple[tuple[str, ...], str, Table | None]]:
    """Yield parts of the story: lines, and a table with its title where there is one."""
    parts = "" if story.names == (story.name,) else f" ({', '.join(story.names)})"
    yield (f"{story.name}{parts}",), "", None
    if story.free:
        yield (f"No kernel: {story.free}.",), "", None
    for row in story.kernels:
        yield tuple(_kernel_lines(row, story.seconds)), "weighed for it:", _candidates(row)
    if not story.kernels and not story.free:
        gone = story.changes[-1].after if story.changes and not story.changes[-1].text else ""
        why = f"{gone} removed or merged it" if gone else "nothing of it runs when the model does"
        yield (f"No kernel: {why}.",), "", None
    for block in story.blocks:
        yield tuple(_memory_lines(block, story)), "", None
    yield tuple(_history_lines(story.changes)), "", None
    if story.remarks:
        said = tuple(f"  {each.pass_name}: {each.message}" for each in story.remarks)
        yield ("Remarks of passes about it:", *said), "", None
    for text in story.code:
        yield ("Machine code:", *(f"  {line}" for line in text.split("\n"))), "", None


def _kernel_lines(row: KernelRow, seconds: float) -> Iterator[str]:
    share = f", {row.time / seconds:.1%} of one run" if seconds > 0 else ""
    yield f"Kernel: {row.name} ({', '.join(row.computes)}) on {row.device}"
    predicted = format_seconds(row.predicted)
    yield f"  predicted {predicted} in {row.runs:g} runs{share} (by {row.source})"
    if row.measured is not None:
        measured = row.measured
        low, median, high = measured.low, measured.median, measured.high
        spread = ""
        if low is not None and median is not None and high is not None:
            quartiles = f"quartiles {format_seconds(low)} and {format_seconds(high)}"
            spread = f" (median {format_seconds(median)}, {quartiles})"
        yield f"  measured {format_seconds(measured.seconds)}{spread}"
    else:
        yield f"  not measured: {row.not_measured}"
    if row.roofline is not None and row.roofline_share is not None:
        least = format_seconds(row.roofline.seconds)
        reached = f"{row.roofline_share:.0%} of it reached"
        yield f"  roofline {least} ({reached}), set by {row.roofline.limit}"
    made = f"{row.family} {row.schedule}".strip() or "no kernel family"
    yield f"  decided: {row.layouts} by {made}"
    yield f"  because: {row.reason}"
    best = row.next_best
    if best is None:
        yield "  next best: nothing else can be made"
    else:
        bound = "" if best.is_exact else "at most "
        extra = f"{bound}{format_seconds(best.extra)} more in all" if best.extra else "as good"
        yield f"  next best: {best.what}, {extra}"


def _candidates(row: KernelRow) -> Table:
    def verdict(extra: float | None, is_taken: bool, is_exact: bool) -> str:
        if is_taken:
            return "taken"
        if extra is None:
            return "rejected: nothing around it fits"
        bound = "" if is_exact else "at most "
        return f"rejected: {bound}{format_seconds(extra)} more in all"

    rows = tuple(
        (
            each.layouts,
            each.family,
            each.source,
            format_seconds(each.seconds),
            verdict(each.extra, each.is_taken, each.is_exact),
        )
        for each in row.candidates
    )
    return Table(("layouts", "kernel", "by", "a run", "verdict"), rows)


def _memory_lines(block: Block, story: Story) -> Iterator[str]:
    steps = story.plan.steps
    yield (
        f"Memory: {format_size(block.size)} at {block.offset} of an arena of "
        f"{format_size(story.plan.arena)} (no plan for this order is below "
        f"{format_size(story.bound)})"
    )
    yield (
        f"  from step {block.first} ({steps[block.first]}) to step {block.last} "
        f"({steps[block.last]}): {block.why}"
    )


def _history_lines(changes: Sequence[Change]) -> Iterator[str]:
    yield "Passes that changed it:"
    for change in changes:
        yield f"  {change.after}:"
        for line in change.text.split("\n") if change.text else ["(gone)"]:
            yield f"    {line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}"
