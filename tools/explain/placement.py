"""Why ops run on the devices on which they do, in a sentence for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.names import names_of
from braid.passes.partition.assign_devices import Strategy
from braid.passes.partition.requests import Pin
from braid.targets.costs.probed_support import ProbedSupport
from braid.targets.machines.target import Target

_AIMS = {
    "latency": "all ops, transfers and starts are together expected to take least so",
    "throughput": "the busiest device is expected to be least busy so",
}


@dataclass(frozen=True)
class Placement:
    """What was asked of `assign-devices`; `said` are names of ops whose devices the model says."""

    target: Target
    strategy: Strategy
    pins: tuple[Pin, ...]
    said: frozenset[str]

    @staticmethod
    def of(
        module: ModuleOp, target: Target, strategy: Strategy | None, pins: Sequence[str]
    ) -> "Placement":
        """Return what is asked of the module as it was read."""
        said = (name for op in module.walk() if device_name(op) for name in names_of(op))
        made = tuple(Pin.parse(text, target) for text in pins)
        return Placement(target, strategy or "priority", made, frozenset(said))

    def reasons(self, module: ModuleOp) -> Mapping[str, str]:
        """Return why each op runs where it does, by its name, once devices are assigned.

        A target of one device needs no reasons.
        """
        if len(self.target.devices) < 2:
            return {}
        support = ProbedSupport(self.target)
        return {
            name: self._reason(op, support)
            for function in runtime_functions(module)
            for op in function.walk()
            if CANDIDATES in op.attributes
            for name in names_of(op)
        }

    def _reason(self, op: Operation, support: ProbedSupport) -> str:
        if self.said.intersection(names_of(op)):
            return "the model says so (braid.device)"
        for pin in self.pins:
            if pin.is_about(op):
                return f"pinned there by '{pin.what}={pin.where}'"
        able, own = support.of(op), self._backend(op)
        if len(able) < 2:
            return "; ".join((f"only '{own}' runs it", *self._refusals(op, support, able)))
        if self.strategy != "priority":
            return f"of {_listed(able)}, {_AIMS[self.strategy]}"
        if able[own] > min(able.values()):
            return "with what it must run beside, no device that is preferred was possible"
        ranks = ", ".join(
            f"'{name}' is {able[name]}" for name in sorted(able, key=able.__getitem__)
        )
        return f"by priority, of which 1 is the best: {ranks}"

    def _backend(self, op: Operation) -> str:
        name = device_name(op)
        device = self.target.default_device if name is None else self.target.device(name)
        return device.backend

    def _refusals(
        self, op: Operation, support: ProbedSupport, able: Mapping[str, int]
    ) -> Iterator[str]:
        """Yield why the other backends do not run it."""
        for backend in self.target.backends:
            if backend.name not in able:
                why = support.failure(op, backend.name)
                yield (
                    f"'{backend.name}' does not have {why}"
                    if why
                    else (f"its list does not give it to '{backend.name}'")
                )


def _listed(names: Mapping[str, int]) -> str:
    return ", ".join(f"'{name}'" for name in names)
