"""Read requests of where ops run: pins, by `braid.device` and by options, and candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.warnings import emit_warning
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.support.errors import BraidError, Note, UnsupportedError, did_you_mean
from braid.targets.costs.backend_support import (
    kinds_of,
    require_known_operations,
    similar_operation,
)
from braid.targets.costs.probed_support import ProbedSupport
from braid.targets.machines.target import Device, Target

_OF_KIND = "op:"


@dataclass(frozen=True)
class Pin:
    """`name=gpu:0` or `op:conv=npu`: ops of this name, or of this kind, run there.

    An op that is a part of a named one, such as `name/exp`, runs on its device. `where`
    is a device, or a backend for any of its devices.
    """

    what: str
    where: str

    @staticmethod
    def parse(text: str, target: Target) -> "Pin":
        """Raise BraidError for another form, or if `target` does not have the device or backend."""
        what, equals, where = text.rpartition("=")
        if not equals or not what or what == _OF_KIND:
            raise BraidError(
                f"a pin is '{text}', expected NAME=DEVICE or op:KIND=DEVICE",
                hint="such as 'conv1=gpu:0' for the op of this name, or 'op:conv=npu' for a kind",
            )
        known = [*(d.name for d in target.devices), *(b.name for b in target.backends)]
        if where not in known:
            raise BraidError(
                f"pin '{text}' names '{where}', no device of target '{target.name}'",
                hint=did_you_mean(where, known) or f"its devices and backends are {known}",
            )
        return Pin(what, where)

    def is_about(self, op: Operation) -> bool:
        """Return whether it says where `op` runs."""
        if not self.what.startswith(_OF_KIND):
            return any(f"{name}/".startswith(f"{self.what}/") for name in names_of(op))
        kind = self.what.removeprefix(_OF_KIND)
        return kind in kinds_of(op)

    def allows(self, device: Device) -> bool:
        """Return whether it is the device, or one of the backend, that is asked for."""
        return self.where in (device.name, device.backend)


def require_used(pins: Sequence[Pin], ops: Sequence[Operation]) -> None:
    """Raise BraidError for a pin that is about none of `ops`."""
    for pin in pins:
        if not any(pin.is_about(op) for op in ops):
            kinds = {f"{_OF_KIND}{kind}" for op in ops for kind in kinds_of(op)}
            known = kinds | {name for op in ops for name in names_of(op)}
            raise BraidError(
                f"pin '{pin.what}={pin.where}' is about no op of the model",
                hint=did_you_mean(pin.what, known)
                or "ops have the names of what they make, which `braid import` shows; op:conv is "
                "all of a kind",
            )


def candidates_of(op: Operation, support: ProbedSupport) -> dict[str, int]:
    """Return the backends that run `op`, with the priority of each.

    Raises UnsupportedError with the nearest supported alternative if there is none.
    """
    found, target = support.of(op), support.target
    if not found:
        failures = [(b.name, support.failure(op, b.name)) for b in target.backends]
        tried = [f"backend '{name}' fails to run it: {why}" for name, why in failures if why]
        raise UnsupportedError(
            f"no device of target '{target.name}' runs {_described(op)}",
            location=source_location(op),
            hint="; ".join(tried) or _nearest_support(op, target),
        )
    return found


def set_candidates(op: Operation, candidates: dict[str, int]) -> None:
    """Note them on `op`."""
    priorities = {name: IntegerAttr(priority, i64) for name, priority in candidates.items()}
    op.attributes[CANDIDATES] = DictionaryAttr(priorities)


def able_devices(
    op: Operation, candidates: Mapping[str, int], support: ProbedSupport
) -> list[Device]:
    """Return the devices of its backends that run `op`."""
    devices = support.target.devices
    return [d for d in devices if d.backend in candidates and support.runs_on(op, d)]


def allowed_devices(
    op: Operation, candidates: Mapping[str, int], pins: Sequence[Pin], support: ProbedSupport
) -> list[Device]:
    """Return the devices that run `op` and where pins let it be.

    Raises BraidError if they are invalid.
    """
    mine = [pin for pin in pins if pin.is_about(op)]
    if (said := device_name(op)) is not None:
        mine.append(Pin(op.name, support.target.device(said).name))
    able = able_devices(op, candidates, support)
    allowed = [device for device in able if all(pin.allows(device) for pin in mine)]
    if not allowed:
        _check_agreement(op, mine, support.target)
        asked = " and ".join(sorted({pin.where for pin in mine}))
        refused = [
            f"{backend.name} does not have {why}"
            for backend in support.target.backends
            if backend.name not in candidates and (why := support.failure(op, backend.name))
        ]
        raise BraidError(
            f"{_described(op)} is pinned to {asked}, which does not run it",
            location=source_location(op),
            hint="; ".join(
                [f"it runs on {', '.join(device.name for device in able) or 'no device'}", *refused]
            ),
        )
    return allowed


def _check_agreement(op: Operation, pins: Sequence[Pin], target: Target) -> None:
    """Raise BraidError for pins that no device meets, whatever it runs."""
    if any(all(pin.allows(device) for pin in pins) for device in target.devices):
        return
    said = device_name(op)
    asked = [f"'braid.device' says {said}"] if said is not None else []
    asked += [f"pin '{p.what}={p.where}'" for p in pins if (p.what, p.where) != (op.name, said)]
    raise BraidError(
        f"{_described(op)} is pinned to no device: {' and '.join(asked)} contradict each other",
        location=source_location(op),
        hint="all pins that are about an op hold, those of its kind and those of its name: keep "
        "one of them",
    )


def check_mapping_lists(target: Target, ops: Sequence[Operation]) -> None:
    """Raise BraidError for an unknown op in a list, and warn of names that seem misspelt.

    A name that is no op may be the kind of an opaque op, of this model or another.
    """
    kinds = {op.kind.data for op in ops if isinstance(op, OpaqueOp)}
    for backend in target.backends:
        require_known_operations(backend)
        for entry in backend.operations if ops else ():
            similar = similar_operation(entry.operation)
            if similar is not None and entry.operation not in kinds:
                emit_warning(
                    ops[0],
                    f"'operations' of backend '{backend.name}' names '{entry.operation}', which is "
                    "not an op of braid, nor the kind of an opaque op of this model",
                    hint=similar,
                )


def colocation_error(ops: Sequence[Operation], name: str) -> BraidError:
    """Return the error that no device runs all ops that are to run together."""
    return BraidError(
        f"no device runs all ops of colocation '{name}'",
        location=source_location(ops[0]),
        notes=[Note("it also holds this one", source_location(op)) for op in ops[1:5]],
        hint="take those that run elsewhere out of the colocation, or pin none of them",
    )


def _described(op: Operation) -> str:
    kind = f"'{op.name}' op" if not isinstance(op, OpaqueOp) else f"opaque op '{op.kind.data}'"
    names = names_of(op)
    return f"{kind} '{names[0]}'" if names else kind


def _nearest_support(op: Operation, target: Target) -> str:
    lists = ", ".join(f"'{backend.name}'" for backend in target.backends)
    if CANDIDATES in op.attributes or (isinstance(op, OpaqueOp) and op.backends is not None):
        return f"it names backends of its own; those of the target are {lists}"
    kinds = kinds_of(op)
    near = [
        f"backend '{backend.name}' runs it where {entry.conditions}"
        for backend in target.backends
        for entry in backend.operations
        if any(map(entry.names, kinds)) and entry.conditions
    ]
    if near:
        return "; ".join(near)
    listed = {entry.operation for backend in target.backends for entry in backend.operations}
    near = [hint for kind in kinds if (hint := did_you_mean(kind, listed, alike=0.75))]
    return next(iter(near), f"add '{kinds[-1]}' to 'operations' of one of the backends {lists}")
