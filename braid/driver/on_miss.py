"""What kernels get of which no search is recorded: `on_miss` of `braid.compile`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from xdsl.passes import ModulePass

from braid.driver.options import CompileOptions
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text
from braid.support.settings import Kernels
from braid.targets.backends import grouping_of
from braid.targets.machines.target import Target

_SELECT = "select-schedules"


class OnMiss(StrEnum):
    """What the kernel of a group gets that has no record.

    The default schedule; a vendor's kernel, where there is one; the fastest of these two and of the
    coarsest space of schedules, which are measured; or what `braid tune` would find.
    """

    DEFAULT = "default"
    LIBRARY = "library"
    PROBE = "probe"
    TUNE = "tune"


@dataclass(frozen=True)
class MissRule:
    """`on_miss`, for `seconds` of searching at most."""

    on_miss: OnMiss
    seconds: float

    @staticmethod
    def of(options: CompileOptions) -> "MissRule":
        """Return what the options say. Raises BraidError for what there is not."""
        on_miss = options.on_miss
        if on_miss not in list(OnMiss):
            raise BraidError(
                f"{option_text('on_miss')} is {on_miss!r}, expected one of {', '.join(OnMiss)}",
                hint=did_you_mean(str(on_miss), OnMiss)
                or f"such as {option_text('on_miss', OnMiss.PROBE)}",
            )
        return MissRule(OnMiss(on_miss), options.on_miss_seconds)

    def settings(self, kernels: str | None) -> dict[str, object]:
        """Return the settings of kernels: the `best` if misses get something else than the default.

        Raises BraidError where the library's kernels are asked for and ruled out.
        """
        if kernels is None and self.on_miss is not OnMiss.DEFAULT:
            kernels = Kernels.BEST
        is_library = self.on_miss is OnMiss.LIBRARY
        if is_library and kernels in (Kernels.GENERATED, Kernels.GENERIC):
            raise BraidError(
                f"kernels without a record are to be the library's, and all to be {kernels}",
                hint=f"{option_text('on_miss', 'library')} goes with "
                f"{option_text('kernels', 'best')}, its default",
            )
        return {"kernels": kernels, "library_on_miss": is_library or None}

    def within(
        self, passes: Sequence[ModulePass], jobs: int | None, target: Target
    ) -> tuple[ModulePass, ...]:
        """`passes` that search what has no record, where that is the rule.

        Raises BraidError where none of them looks up records.
        """
        if self.on_miss not in (OnMiss.PROBE, OnMiss.TUNE):
            return tuple(passes)
        selecting = {_SELECT, *selecting_passes(target)}
        if not any(pass_.name in selecting for pass_ in passes):
            raise BraidError(f"kernels are to be searched, and no pass is '{_SELECT}'")
        return tuple(
            self._searching(pass_.name, jobs) if pass_.name in selecting else pass_
            for pass_ in passes
        )

    def _searching(self, selecting: str, jobs: int | None) -> ModulePass:
        """Return what searches in the place of a pass that selects.

        Its pass is looked up in the registry, as in any pipeline: the driver imports no tuning.
        """
        levels = "levels=1 " if self.on_miss is OnMiss.PROBE else ""
        workers = "" if jobs is None else f" jobs={jobs}"
        text = f"tune-schedules{{{levels}time-limit={self.seconds}{workers} selecting={selecting}}}"
        (searching,) = parse_pipeline(text)
        return searching


def given_settings(options: CompileOptions) -> dict[str, object]:
    """Return the settings that the options write on a module; None for those that they leave.

    Raises BraidError as `MissRule`.
    """
    return {
        "numerics": options.numerics,
        "precision": options.precision,
        "emulate": options.emulate or None,
        **MissRule.of(options).settings(options.kernels),
    }


def selecting_passes(target: Target) -> list[str]:
    """Return the passes by which backends of `target` select schedules of groups of their own."""
    found = (grouping_of(device) for device in target.devices)
    return list(dict.fromkeys(each.schedule_pass for each in found if each is not None))
