"""Costs of ops as members of the groups that passes would form, found by a trial on a copy.

Ops of the copy are named by number, and rewriting keeps names, so that a group shows which ops it
is made of, whatever passes do to them. Inputs of the copy lose their names: passes name what they
do to an input after it, and an input may be called "0".
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.clusters import is_placed
from braid.analysis.structure.nesting import ops_outside_groups
from braid.dialects.braid.attribute_names import DEVICE, NAME
from braid.dialects.braid.clusters import clear_placement, set_device
from braid.dialects.braid.names import names_of, set_names
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import UnsupportedError
from braid.targets.backends import has_all_backends
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.costs.op_amounts import amounts_of
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Device

_PREPARE = "prepare-backends"


@dataclass(frozen=True)
class Trial:
    """A copy of a module after some passes, in which ops are named by `numbers` of the original."""

    module: ModuleOp
    originals: Sequence[Operation]

    @staticmethod
    def run(
        ctx: Context,
        module: ModuleOp,
        passes: Sequence[str],
        originals: Sequence[Operation],
        devices: Mapping[Operation, Sequence[str]],
        target: str | None,
    ) -> "Trial":
        """Run `passes` on a copy in which `originals` are on `devices`, without any said.

        If an op has several devices, the first is its own, and the others take turns with it.
        Backends prepare nothing where those of some devices are not installed. Remarks and warnings
        of the trial are dropped. Raises BraidError as the passes do.
        """
        if not has_all_backends(target_of(module, target)):
            passes = [name for name in passes if not name.startswith(_PREPARE)]
        numbers = {op: number for number, op in enumerate(originals)}
        copy = module.clone()
        for mine, original in zip(copy.walk(), module.walk(), strict=True):
            set_names(mine, [str(numbers[original])] if original in numbers else [])
            if isinstance(mine, FuncOp) and mine.arg_attrs is not None:
                mine.arg_attrs = ArrayAttr(map(_without_name, mine.arg_attrs))
            if original in numbers:
                clear_placement(mine)
                if original in devices:
                    set_device(mine, devices[original][0], devices[original][1:])
        with collect_remarks(), handle_diagnostics(lambda _: None):
            for pass_ in parse_pipeline(",".join(passes)):
                _for(pass_, target).apply(ctx, copy)
        return Trial(copy, originals)

    def groups(self) -> Iterator[tuple[Operation, list[int]]]:
        """Yield the ops that run, and the numbers of the originals that each is made of."""
        numbers = {str(number): number for number in range(len(self.originals))}
        for function in runtime_functions(self.module):
            for op in ops_outside_groups(function):
                parts = (name.partition("/")[0] for name in names_of(op))
                members = [numbers[part] for part in parts if part in numbers]
                if is_placed(op) and members:
                    yield op, list(dict.fromkeys(members))

    def seconds(
        self, devices: Sequence[Device], allowed: Sequence[Set[str]], costs: CostSource
    ) -> NDArray[np.float64]:
        """Return original × device: the seconds of one run, including the start of its kernel.

        Members share the seconds of a group in its best layouts as they would take them alone. By
        original, `allowed` are the devices that are asked about.
        """
        found = np.zeros((len(self.originals), len(devices)))
        layouts = LayoutCosts(self.module, costs, "seconds")
        for group, members in self.groups():
            said = group.attributes.get(DEVICE)
            asked = {name for member in members for name in allowed[member]}
            for column, device in enumerate(devices):
                if device.name not in asked:
                    continue
                group.attributes[DEVICE] = StringAttr(device.name)
                on = costs.on(device)
                if on.backend.issue is None:
                    whole = min(choice.cost for choice in layouts.choices(group))
                else:
                    whole = _seconds(on, group)
                found[members, column] += whole * self._shares(members, costs, device)
            _restore(group, said)
        return found

    def chosen_seconds(self, costs: CostSource) -> NDArray[np.float64]:
        """Return by original the seconds of one run where it is, in the layouts that were
        chosen.
        """
        found = np.zeros(len(self.originals))
        for group, members in self.groups():
            on = costs.of(group)
            device = on.backend.device
            assert device is not None
            whole = _seconds(on, group)
            found[members] += whole * self._shares(members, costs, device)
        return found

    def _shares(
        self, members: Sequence[int], costs: CostSource, device: Device
    ) -> NDArray[np.float64]:
        """Return the parts of members in what their group takes, by the roofline of each alone."""
        if len(members) == 1:
            return np.ones(1)
        rates = costs.on(device)
        alone = [
            rates.roofline_seconds(amounts_of(self.originals[member]).by_resource)
            for member in members
        ]
        total = sum(alone)
        return np.array(alone) / total if total else np.full(len(alone), 1 / len(alone))


def _seconds(costs: DeviceCosts, group: Operation) -> float:
    """Return the seconds of a group as it is stored, with its start; open dims count as 1."""
    try:
        cost = costs.cost(group)
    except UnsupportedError:
        cost = min((cost for _, cost in costs.choices(group)), key=lambda each: each.seconds)
    return cost.seconds + costs.start_of(cost)


def _without_name(attributes: DictionaryAttr) -> DictionaryAttr:
    return DictionaryAttr({key: a for key, a in attributes.data.items() if key != NAME})


def _for(pass_: ModulePass, target: str | None) -> ModulePass:
    own = target is not None and any(field.name == "target" for field in fields(pass_))
    return replace(pass_, target=target) if own else pass_


def _restore(op: Operation, device: object) -> None:
    if isinstance(device, StringAttr):
        op.attributes[DEVICE] = device
    else:
        op.attributes.pop(DEVICE, None)
