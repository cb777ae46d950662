"""Decide the schedules of kernels without a record of a search: the option `untuned` of
`braid.compile`."""

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


class Untuned(StrEnum):
    """The kernel that a group without a record of a search gets.

    It is the default schedule; a vendor's kernel, if there is one; the fastest by measurement of
    these two and of the coarsest space of schedules; or the schedule that `braid tune` would find.
    """

    DEFAULT = "default"
    LIBRARY = "library"
    PROBE = "probe"
    TUNE = "tune"


@dataclass(frozen=True)
class UntunedPolicy:
    """The choice for untuned kernels, and the most `seconds` of searching for them."""

    untuned: Untuned
    seconds: float

    @staticmethod
    def of(options: CompileOptions) -> "UntunedPolicy":
        """Return the policy of the options. Raises BraidError for an unknown value."""
        untuned = options.untuned
        if untuned not in list(Untuned):
            raise BraidError(
                f"{option_text('untuned')} is {untuned!r}, expected one of {', '.join(Untuned)}",
                hint=did_you_mean(str(untuned), Untuned)
                or f"such as {option_text('untuned', Untuned.PROBE)}",
            )
        return UntunedPolicy(Untuned(untuned), options.untuned_seconds)

    def settings(self, kernels: str | None) -> dict[str, object]:
        """Return the settings of kernels: the `best` if misses get something else than the default.

        Raises BraidError where the library's kernels are asked for and ruled out.
        """
        if kernels is None and self.untuned is not Untuned.DEFAULT:
            kernels = Kernels.BEST
        is_library = self.untuned is Untuned.LIBRARY
        if is_library and kernels in (Kernels.GENERATED, Kernels.GENERIC):
            raise BraidError(
                f"kernels without a record are to be the library's, and all to be {kernels}",
                hint=f"{option_text('untuned', 'library')} goes with "
                f"{option_text('kernels', 'best')}, its default",
            )
        return {"kernels": kernels, "library_on_miss": is_library or None}

    def within(
        self, passes: Sequence[ModulePass], jobs: int | None, target: Target
    ) -> tuple[ModulePass, ...]:
        """Return `passes` that search kernels without a record, if that is the policy.

        Raises BraidError if none of them looks up records.
        """
        if self.untuned not in (Untuned.PROBE, Untuned.TUNE):
            return tuple(passes)
        selecting = {_SELECT, *selecting_passes(target)}
        if not any(pass_.name in selecting for pass_ in passes):
            raise BraidError(f"kernels are to be searched, and no pass is '{_SELECT}'")
        return tuple(
            self._searching(pass_.name, jobs) if pass_.name in selecting else pass_
            for pass_ in passes
        )

    def _searching(self, selecting: str, jobs: int | None) -> ModulePass:
        """Return the pass that searches in place of a pass that selects.

        Its pass is looked up in the registry, as in any pipeline: the driver imports no tuning.
        """
        levels = "levels=1 " if self.untuned is Untuned.PROBE else ""
        workers = "" if jobs is None else f" jobs={jobs}"
        text = f"tune-schedules{{{levels}time-limit={self.seconds}{workers} selecting={selecting}}}"
        (searching,) = parse_pipeline(text)
        return searching


def given_settings(options: CompileOptions) -> dict[str, object]:
    """Return the settings that the options write on a module; None for those that they leave.

    Raises BraidError as `UntunedPolicy`.
    """
    return {
        "numerics": options.numerics,
        "precision": options.precision,
        "emulate": options.emulate or None,
        **UntunedPolicy.of(options).settings(options.kernels),
    }


def selecting_passes(target: Target) -> list[str]:
    """Return the passes by which backends of `target` select schedules of groups of their own."""
    found = (grouping_of(device) for device in target.devices)
    return list(dict.fromkeys(each.schedule_pass for each in found if each is not None))
