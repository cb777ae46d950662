"""What predictions for groups on a device are multiplied with, by what was tried there.

All choices of layouts and families of a group have one factor, so that it says how long the group
takes, and not which choice is the best: of those that were not measured nothing else is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from braid.dialects.braid.regions import FusedOp
from braid.support.record_store import Fields
from braid.targets.costs.group_kinds import kinds_of
from braid.targets.costs.probe_records import Probe, device_scope, probes_in, stored_probes
from braid.targets.costs.ratios import Ratios, Sample
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.machines.target import BackendDescription


class Factor(NamedTuple):
    """`ratio` is measured ÷ predicted; of the very group where it `is_own`, else of its kinds."""

    ratio: float
    is_own: bool


@dataclass(frozen=True)
class MeasuredRatios:
    """By the text of groups, and of their kinds."""

    own: Mapping[str, float] = field(default_factory=dict[str, float])
    kinds: Ratios = field(default_factory=Ratios)

    @staticmethod
    def of(probes: list[Probe]) -> "MeasuredRatios":
        """What probes say; of ops that ran alone only where no model ran as a whole."""
        known = [p for p in probes if p.works and p.predicted > 0]
        whole = [p for p in known if not p.of_op] or known
        samples = {p.text: Sample(p.kinds, p.predicted, p.seconds) for p in whole}
        own = {text: sample.ratio for text, sample in samples.items()}
        return MeasuredRatios(own, Ratios.of(samples.values()))

    def __bool__(self) -> bool:
        """Whether anything was measured."""
        return bool(self.own)

    def of_group(self, group: FusedOp, family: str, *, is_far: bool | None = None) -> Factor:
        """The factor of a group; `family` is the first that makes its kernel, empty for none.

        `is_far` as in `kinds_of`.
        """
        own = self.own.get(canonical_kernel_text(group))
        if own is not None:
            return Factor(own, is_own=True)
        return Factor(self.kinds.of_kinds(kinds_of(group, family, is_far=is_far)), is_own=False)


def load_ratios(description: BackendDescription) -> MeasuredRatios:
    """What was tried on the device of `description`; nothing for one that is of no target."""
    device, records = description.device, stored_probes()
    if not records or device is None or not device.name:
        return MeasuredRatios()
    scopes = tuple(device_scope(description, of_op=each) for each in (False, True))
    known = _loaded.get(scopes)
    if known is None or known[0] is not records:
        probes = [probe for scope in scopes for probe in probes_in(scope, records)]
        known = _loaded[scopes] = (records, MeasuredRatios.of(probes))
    return known[1]


_loaded: dict[tuple[str, ...], tuple[Mapping[str, Fields], MeasuredRatios]] = {}
"""By scopes, for the records of which they were made."""
