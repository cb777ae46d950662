"""Look up this user's records about kernels of a device, in tables that are built once.

Records hold measured seconds of a kernel in a choice of layouts, the gain of a tuned schedule over
the default one, and, for groups that ran in a model, the error of the prediction. The last is one
factor for all choices and families of a group, so that it says how long the group takes, and not
which choice is the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.records.record_store import Fields
from braid.support.settings import Kernels
from braid.targets.costs.cost_records import load_records
from braid.targets.costs.op_amounts import kinds_of, model_weight_bytes
from braid.targets.costs.probe_records import Probe, device_scope, probes_in, stored_probes
from braid.targets.costs.ratios import Ratios, Sample
from braid.targets.costs.schedule_records import TunedKernel, load_tuned
from braid.targets.kernels.group_matches import Match
from braid.targets.kernels.keys import (
    GroupKey,
    KernelKey,
    canonical_kernel_text,
    choice_digest,
    stored_text,
)
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.identity import machine_text
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import BackendDescription

_PARTS_OF_CACHE = 2
"""The number of per-core parts of the last cache that a core uses while others need none."""


class Factor(NamedTuple):
    """`ratio` is measured ÷ predicted; of the very group where it `is_own`, else of its kinds."""

    ratio: float
    is_own: bool


class Measured(NamedTuple):
    """The measured `seconds` of one run of a kernel, None where none are known.

    `gain` is the time of a run with the tuned schedule, divided by that with the default one.
    """

    seconds: float | None = None
    gain: float = 1.0


@dataclass(frozen=True)
class MeasuredRatios:
    """Measured ÷ predicted by the text of groups, and by their kinds."""

    own: Mapping[str, float] = field(default_factory=dict[str, float])
    kinds: Ratios = field(default_factory=Ratios)

    @staticmethod
    def of(probes: list[Probe]) -> "MeasuredRatios":
        """Return the measurements of probes; those of single ops count only if no model ran as a
        whole."""
        known = [p for p in probes if p.works and p.predicted > 0]
        whole = [p for p in known if not p.of_op] or known
        samples = {p.text: Sample(p.kinds, p.predicted, p.seconds) for p in whole}
        own = {text: sample.ratio for text, sample in samples.items()}
        return MeasuredRatios(own, Ratios.of(samples.values()))


class Measurements:
    """Records of kernels of `machine`; make one for each pass.

    `records` have seconds by the digest of a `KernelKey`, `tuned` kernels by that of a `GroupKey`.
    """

    def __init__(
        self,
        records: Mapping[str, float] | None = None,
        tuned: Mapping[str, TunedKernel] | None = None,
        ratios: MeasuredRatios | None = None,
        machine: Machine | None = None,
        *,
        takes_library: bool = False,
    ) -> None:
        """Read measurements; with `takes_library`, a vendor's kernel is used where a record prefers
        it.
        """
        self._records, self._tuned = records or {}, tuned or {}
        self._ratios = ratios or MeasuredRatios()
        self._machine = "" if machine is None else machine_text(machine)
        self._native = machine_text(cpu_machine(NATIVE))
        cache = 0.0 if machine is None else machine.fact("last_cache_bytes", 0.0)
        self._cache_bytes = _PARTS_OF_CACHE * cache
        self._takes_library = takes_library
        self._weights: dict[ModuleOp, int] = {}

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._records or self._tuned or self._ratios.own)

    def of(
        self,
        group: FusedOp,
        matches: Sequence[Match],
        options: Sequence[tuple[Match, LayoutChoice]],
    ) -> tuple[list[Measured], Factor | None]:
        """Return what is known of `options`, and the factor of predictions for the group.

        `matches` are the group's; schedules of other families, or of other versions, are unknown.
        None is the factor where nothing was measured.
        """
        kinds: tuple[str, ...] = ()
        if self._ratios.own:
            kinds = kinds_of(group, first_family(matches), is_far=self.is_far(group))
        body, found = canonical_kernel_text(group), list[Measured]()
        made = {(match.family.name, match.family.version) for match in matches}
        for match, choice in options:
            gain, seconds = 1.0, None
            if self._records:
                stored = GroupKey(stored_text(group, choice, body), self._native)
                seconds = self._records.get(KernelKey.of(group, stored, match.family).digest)
            key = choice_digest(group, choice, self._machine, body) if self._tuned else ""
            tuned = self._tuned.get(key)
            if tuned is not None and tuned.baseline:
                # Mostly the library wants weights in another layout, which has a cost.
                library = tuned.library if tuned.keeps_library and self._takes_library else None
                takers = (m for m in matches if m.family.name == tuned.vendor)
                chosen = tuned.chosen
                if library is not None and any(choice in m.layouts for m in takers):
                    gain = library / tuned.baseline
                elif chosen is not None and (chosen.family, tuned.version) in made:
                    gain = tuned.seconds / tuned.baseline
            found.append(Measured(seconds, gain))
        own = self._ratios.own.get(body)
        if own is not None:
            return found, Factor(own, is_own=True)
        return found, Factor(self._ratios.kinds.of_kinds(kinds), is_own=False) if kinds else None

    def is_far(self, group: FusedOp) -> bool | None:
        """Return whether the weights of the model come from memory in each run; None if not known.

        A core alone gets more than its part of the last cache: twice is assumed.
        """
        module = group.get_toplevel_object()
        if not self._cache_bytes or not isinstance(module, ModuleOp):
            return None
        if module not in self._weights:
            self._weights[module] = model_weight_bytes(module)
        return self._weights[module] > self._cache_bytes


def first_family(matches: Sequence[Match]) -> str:
    """Return the name of the first family that takes a group; empty if none does."""
    return matches[0].family.name if matches else ""


def load_measurements(description: BackendDescription) -> Measurements:
    """Return the records of this user's store about the device of `description`."""
    device = description.device
    return Measurements(
        load_records(),
        load_tuned(),
        _load_ratios(description),
        description.machine,
        takes_library=device is not None and device.settings.kernels is Kernels.BEST,
    )


def _load_ratios(description: BackendDescription) -> MeasuredRatios:
    """Return the trials on the device of `description`; none for a device without a target."""
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
"""The loaded measurements by scopes, and the records of which they were made."""
