"""Keep what was tried on devices by `braid targets calibrate --model`, in this user's record store.

A record describes one thing, identified by its text. It is a single op of a model (`of_op`), with
whether the device runs it and how fast, or a group of a model that ran as a whole, so that caches
are as in models. Records are kept under a digest of all else on which they depend, the *scope*: the
machine with its measured facts, the backend with the target's figures for its units, the plugin,
and the versions of braid and of the code generators. So a record that no longer fits is never
found.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

from braid.support.checked_calls import Checked
from braid.support.records.record_store import Fields, Record, RecordStore, default_store
from braid.support.toolchain import braid_version, distribution_version, toolchain
from braid.targets.backends import backend, backend_names
from braid.targets.machines.identity import machine_text, processor_name
from braid.targets.machines.target import BackendDescription

PROBE = "probe"
"""The kind of these records."""

VERSION = 1
"""Raised when what is tried, or how, changes: older records are not found then."""


@dataclass(frozen=True)
class Probe:
    """The outcome of running one thing `runs` times, with `failures`.

    `text` identifies it, `what` describes it to people; `op` and `type` are the kind of its main op
    and what this computes with. `seconds` is the median of the runs that ended well, `spread` the
    distance of their quartiles as a part of it, both 0 where none did; `message` is the reason of
    the last failure. `predicted` are the predicted seconds without records, 0 if there is no
    prediction, and `kinds` those of `op_amounts.kinds_of`.
    """

    text: str
    what: str
    op: str
    type: str
    of_op: bool
    runs: int
    failures: int = 0
    seconds: float = 0.0
    spread: float = 0.0
    predicted: float = 0.0
    kinds: tuple[str, ...] = ()
    message: str = ""

    @property
    def works(self) -> bool:
        """Return whether at least one run ended well."""
        return self.runs > self.failures


def device_scope(description: BackendDescription, *, of_op: bool) -> str:
    """Return the digest of all that records of a device depend on; `description` is
    `Target.backend_of`.

    Records of ops depend on the plugin too, since they say whether it accepts the code. Kernels
    in a model are as fast whoever starts them.
    """
    device = description.device
    assert device is not None, "probes are of devices"
    own = replace(description, operations=(), device=None)
    machine = device.machine
    installed = device.backend in backend_names()
    maker = _package_of(backend(device.backend)) if installed else ""
    parts = (
        str(VERSION),
        device.plugin if of_op else "",
        machine_text(machine),
        repr(machine.facts),
        repr(own),
        maker,
        braid_version(),
        *toolchain(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def keep_probes(scope: str, probes: Iterable[Probe], store: RecordStore | None = None) -> None:
    """Add what was tried in a scope to a store, by default the user's; the last of a text counts.

    Raises BraidError where the store cannot be written.
    """
    machine = processor_name()
    rows = [
        Record(PROBE, _key(scope, probe), {"scope": scope, **asdict(probe)}, machine)
        for probe in probes
    ]
    (store or default_store()).append(rows)


def stored_probes(store: RecordStore | None = None) -> Mapping[str, Fields]:
    """Return all records of a store, by default the user's; the same object while none are
    added.
    """
    return (store or default_store()).read(PROBE)


def probes_in(scope: str, records: Mapping[str, Fields]) -> list[Probe]:
    """Return the valid records of a scope."""
    own = (value for value in records.values() if value.get("scope") == scope)
    return [probe for value in own if (probe := probe_of(value)) is not None]


def probe_of(value: Fields) -> Probe | None:
    """Return the probe that a record holds, None where it holds something else."""
    names = [field.name for field in fields(Probe)]
    if any(name not in value for name in names):
        return None
    given: dict[str, Any] = {name: value[name] for name in names}
    texts = [given[name] for name in ("text", "what", "op", "type", "message")]
    numbers = [given[name] for name in ("seconds", "spread", "predicted")]
    counts = [given[name] for name in ("runs", "failures")]
    kinds = given["kinds"]
    if not all(isinstance(text, str) for text in texts) or not isinstance(kinds, list):
        return None
    if not all(isinstance(n, int | float) and 0 <= n < math.inf for n in (*numbers, *counts)):
        return None
    given["kinds"] = tuple(str(kind) for kind in cast(list[object], kinds))
    return Probe(**given)


def _key(scope: str, probe: Probe) -> str:
    parts = (scope, str(probe.of_op), probe.text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _package_of(thing: object) -> str:
    inner = thing.thing if isinstance(thing, Checked) else thing
    return distribution_version(type(inner).__module__.partition(".")[0])
