"""Decide which backends of a target run an op, and in which order, by mapping lists and by trying.

Of support, whoever is more specific wins: `braid.candidates` on the op, and the `backends` of an
opaque one; then an entry of the mapping list that names the op; then what was tried; then an entry
for all ops (`*`). A backend without any list runs what it was seen to run. Of priorities, a number
that a list gives for the op by name holds. If no list gives one, and all backends that run the op
were timed, the faster ones come first; otherwise the priorities of the lists hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation

from braid.analysis.sizes.open_forms import has_open_sizes
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.targets.backend import Backend
from braid.targets.backends import backend, backend_names
from braid.targets.costs.backend_support import entry_for, priority_on
from braid.targets.costs.op_amounts import computed_type, kind_name
from braid.targets.costs.probe_records import Probe, device_scope, probes_in, stored_probes
from braid.targets.kernels.op_text import op_text
from braid.targets.machines.mapping_list import BEST_PRIORITY, EVERY_OP
from braid.targets.machines.target import BackendDescription, Device, Target

Kind = tuple[str, str]
"""Name and type of an op."""

OPEN_SIZES = "code for sizes that are known only at run time"
"""What a backend with `supports_dynamic_shapes` has, and others do not have."""

_FASTER = 0.95
"""The largest fraction of another backend's time with which a backend comes before it."""

_LEAST = 1e-6
"""Seconds below which times are equal: views take none, and starting anything takes longer."""


@dataclass(frozen=True)
class ProbedSupport:
    """The ops that a target's backends run, by mapping lists and trying; make one for each pass."""

    target: Target
    _refusals: dict[tuple[Operation, str], str | None] = field(
        default_factory=dict[tuple[Operation, str], str | None],
        init=False,
        repr=False,
        compare=False,
    )
    """Backends may try an op to say that."""
    _known: ParameterExpressions = field(
        default_factory=ParameterExpressions, init=False, repr=False, compare=False
    )

    def of(self, op: Operation) -> dict[str, int]:
        """Return the backends that run `op`, with the priority of each, 1 is the best.

        Raises BraidError for an entry of a list that asks for what such ops do not have.
        """
        found: dict[str, int] = {}
        for described in self.target.backends:
            priority = self._on(op, described)
            if priority is not None:
                found[described.name] = priority
        if len(found) > 1 and not self._is_written(op, found):
            return self._ranks(op, sorted(found)) or found
        return found

    def failure(self, op: Operation, backend: str) -> str | None:
        """Return why `op` does not run there, as far as that was tried; None where it does.

        An op that was not tried is judged by others of its kind and type: it counts as failing if
        all of them fail. Ops that the backend refuses were not tried.
        """
        refused = self._refusal(op, backend)
        return refused if refused is not None else _failure(op, self._tried.get(backend, {}))

    def runs_on(self, op: Operation, device: Device) -> bool:
        """Return whether `device` runs `op`, whose backend does: not where it alone failed to.

        Only the host runs ops of open sizes: the memory of what it launches is fixed.
        """
        if device.name != self.target.host and has_open_sizes(op):
            return False
        backend = self.target.backend_of(device)
        entry = entry_for(op, backend)
        is_named = entry is not None and entry.operation != EVERY_OP
        if is_named or isinstance(op, GroupOp | OpaqueOp):
            return True
        return _failure(op, self._tried_on.get(device.name, {})) is None

    def _refusal(self, op: Operation, name: str) -> str | None:
        """Return the backend's answer about `op`, if it has one.

        Of an opaque op only the mapping list knows, unless its sizes are open.
        """
        if name not in backend_names():
            return None
        key = op, name
        if key not in self._refusals:
            self._refusals[key] = self._reason(op, backend(name))
        return self._refusals[key]

    def _reason(self, op: Operation, backend: Backend) -> str | None:
        if not backend.supports_dynamic_shapes and has_open_sizes(op):
            return OPEN_SIZES
        return None if isinstance(op, OpaqueOp) else backend.unsupported_reason(op, self._known)

    def _on(self, op: Operation, backend: BackendDescription) -> int | None:
        listed, reason = priority_on(op, backend), self._refusal(op, backend.name)
        if reason == OPEN_SIZES:
            return None
        if isinstance(op, GroupOp) or _says_itself(op):
            return listed
        if reason is not None:
            return None
        if not backend.operations and listed is None:
            works = any(probe.works for probe in _of_kind(op, self._tried.get(backend.name, {})))
            return BEST_PRIORITY if works and self.failure(op, backend.name) is None else None
        entry = entry_for(op, backend)
        if entry is None or entry.operation != EVERY_OP:
            return listed
        return listed if self.failure(op, backend.name) is None else None

    def _is_written(self, op: Operation, backends: Iterable[str]) -> bool:
        """Return whether somebody gave one of `backends` a number for this op."""
        if isinstance(op, GroupOp) or _says_itself(op):
            return True
        entries = (entry_for(op, self.target.backend(name)) for name in backends)
        return any(e is not None and e.operation != EVERY_OP and e.is_own for e in entries)

    def _ranks(self, op: Operation, backends: Sequence[str]) -> dict[str, int] | None:
        """Return the places of `backends` by time, equal where they are as fast; None if not
        measured.
        """
        if not all(self._tried.get(name) for name in backends):
            return None
        worked = [{t for t, p in self._tried[name].items() if p.works} for name in backends]
        common = set[str].intersection(*worked)
        text = op_text(op)
        kind = (kind_name(op), computed_type(op))
        first = self._tried[backends[0]]
        same = [text] if text in common else [t for t in common if _kind(first[t]) == kind]
        if not same:
            return None
        seconds = {name: sum(self._tried[name][t].seconds for t in same) for name in backends}
        return places(seconds)

    @cached_property
    def _tried_on(self) -> dict[str, dict[str, Probe]]:
        """Outcomes by device and text."""
        records = stored_probes()
        return {
            device.name: {
                probe.text: probe
                for probe in probes_in(
                    device_scope(self.target.backend_of(device), of_op=True), records
                )
            }
            for device in (self.target.devices if records else ())
        }

    @cached_property
    def _tried(self) -> dict[str, dict[str, Probe]]:
        """Outcomes by backend and text; of a backend's devices, one on which it works counts."""
        found: dict[str, dict[str, Probe]] = {}
        for device in self.target.devices:
            own = found.setdefault(device.backend, {})
            for text, probe in self._tried_on.get(device.name, {}).items():
                if text not in own or not own[text].works:
                    own[text] = probe
        return found


def places(seconds: Mapping[str, float]) -> dict[str, int]:
    """Return the priorities of who takes this many seconds, equal for those who are as fast."""
    taken = {name: max(own, _LEAST) for name, own in seconds.items()}
    return {
        name: BEST_PRIORITY + sum(other < _FASTER * own for other in taken.values())
        for name, own in taken.items()
    }


def _failure(op: Operation, tried: Mapping[str, Probe]) -> str | None:
    """Return why `op` failed, or all that were tried of its kind; None where it did not."""
    if not tried:
        return None
    own = tried.get(op_text(op))
    same = [own] if own is not None else _of_kind(op, tried)
    if not same or any(probe.works for probe in same):
        return None
    return same[-1].message


def _of_kind(op: Operation, tried: Mapping[str, Probe]) -> list[Probe]:
    kind = (kind_name(op), computed_type(op))
    return [probe for probe in tried.values() if _kind(probe) == kind]


def _says_itself(op: Operation) -> bool:
    """Return whether `op` names its backends."""
    is_given = isinstance(op.attributes.get(CANDIDATES), DictionaryAttr)
    return is_given or (isinstance(op, OpaqueOp) and op.backends is not None)


def _kind(probe: Probe) -> Kind:
    return probe.op, probe.type
