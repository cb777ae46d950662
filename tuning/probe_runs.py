"""Compiling a module for a device and running it there, in a process that may crash."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.clusters import is_placed
from braid.analysis.structure.nesting import ops_outside_groups
from braid.dialects.braid.attribute_names import DEVICE
from braid.dialects.braid.names import set_names
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.settings import write_settings
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import chain_parameters, read_to_compile
from braid.driver.sources.source_model import SourceModel
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.op_amounts import computed_type, kind_name, main_op
from braid.targets.costs.probed_support import ProbedSupport
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.machines.resolve import device_of, set_target, target_of
from braid.tuning.synthetic_inputs import synthetic_inputs, synthetic_lengths, synthetic_parameters

_KERNELS = "outline-kernels"
"""The pass after which kernels are no ops any more that have costs."""
_FEWEST, _MOST = 3, 25


@dataclass(frozen=True)
class OpTrial:
    """Run the `@main` of a module, as text, on `device` of a target, for some seconds."""

    text: str
    target: str
    device: str
    seconds: float


@dataclass(frozen=True)
class ModelTrial:
    """Run the model at `path` with all ops on `device` that it takes, for some seconds."""

    path: Path
    options: CompileOptions
    device: str
    seconds: float


@dataclass
class GroupTimes:
    """A group on the device: It has `text` and `kinds`, its main op, and its predicted time."""

    text: str
    what: str
    op: str
    type: str
    kinds: tuple[str, ...]
    predicted: float
    seconds: list[float] = field(default_factory=list[float])


@dataclass
class Outcome:
    """The seconds of each run on the device, and those of its groups.

    `message` is the reason of a failure; `at_load` that the code was made, and not taken: the
    device may be missing.
    """

    seconds: list[float] = field(default_factory=list[float])
    groups: list[GroupTimes] = field(default_factory=list[GroupTimes])
    message: str = ""
    at_load: bool = False


def run_trial(trial: OpTrial | ModelTrial) -> Outcome:
    """Return what came of a trial; what raises is an outcome as well."""
    outcome = Outcome()
    try:
        with collect_remarks(), handle_diagnostics(lambda _: None):
            _run(trial, outcome)
    except Exception as error:
        outcome.message = str(error).strip().partition("\n")[0] or type(error).__name__
    return outcome


def _run(trial: OpTrial | ModelTrial, outcome: Outcome) -> None:
    context = make_context()
    if isinstance(trial, OpTrial):
        source = _parsed(context, trial)
    else:
        source = read_to_compile(context, trial.path, trial.options)
        synthetic = synthetic_parameters(source.module, source.parameters)
        source = replace(source, parameters=chain_parameters(source.parameters, synthetic))
        _place(source.module, trial.device)
    lengths = synthetic_lengths(source.module)
    decided = _decide(context, source.module)
    outcome.groups = _groups(decided, trial.device)
    compiled = partial(
        braid.compile, decided, passes=_KERNELS, parameters=source.parameters, profile=True, jobs=1
    )
    try:
        model = compiled()
    except BraidError:
        compiled(load=False)
        outcome.at_load = True
        raise
    inputs = synthetic_inputs(model.inputs, lengths)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    _time(lambda: model.run(inputs), model, trial, outcome)


def _time(
    run: Callable[[], object], model: braid.Model, trial: OpTrial | ModelTrial, outcome: Outcome
) -> None:
    """Run until the seconds are over; the first run, which fills caches, does not count."""
    run()
    end = time.monotonic() + trial.seconds
    while len(outcome.seconds) < _FEWEST or (
        time.monotonic() < end and len(outcome.seconds) < _MOST
    ):
        model.reset_profile()
        before = model.launched_seconds().get(trial.device, 0.0)
        run()
        profile = model.profile()
        for number, group in enumerate(outcome.groups):
            entry = profile.get(_name(number))
            group.seconds.append(entry.seconds / max(entry.count, 1) if entry else 0.0)
        launched = model.launched_seconds()
        outcome.seconds.append(
            launched[trial.device] - before
            if trial.device in launched
            else sum(entry.seconds for entry in profile.values())
        )


def _parsed(context: Context, trial: OpTrial) -> SourceModel:
    """Return the module of one op, whose weights are synthetic."""
    module = parse_mlir(context, trial.text, "op.mlir").module
    set_target(module, trial.target)
    write_settings(module, {})
    return SourceModel("op", module, synthetic_parameters(module))


def _place(module: ModuleOp, device: str) -> None:
    """Mark all ops that `device` takes as running there."""
    target = target_of(module)
    support, backend = ProbedSupport(target), target.device(device).backend
    for function in runtime_functions(module):
        for op in ops_outside_groups(function):
            if is_placed(op) and backend in support.of(op):
                op.attributes[DEVICE] = StringAttr(device)


def _decide(context: Context, module: ModuleOp) -> ModuleOp:
    """Run the default pipeline up to where kernels are outlined."""
    passes = passes_for(module)
    names = [each.name for each in passes]
    run_pipeline(context, module, passes[: names.index(_KERNELS)])
    return module


def _groups(module: ModuleOp, device: str) -> list[GroupTimes]:
    """Return the groups of `device`, which are named by their number then."""
    target = target_of(module)
    costs = CostSource(target, {})
    found: list[GroupTimes] = []
    for group in [op for op in module.walk() if isinstance(op, FusedOp)]:
        on = device_of(group, target)
        set_names(group, [])
        if on.name != device:
            continue
        own = costs.on(on)
        cost, main = own.cost(group), main_op(group)
        known = cost.source in (Source.FAMILY, Source.ROOFLINE)
        predicted = cost.seconds + own.start_of(cost) if known else 0.0
        kinds = own.kinds(group)
        set_names(group, [_name(len(found))])
        text, kind, type = canonical_kernel_text(group), kind_name(main), computed_type(group)
        found.append(GroupTimes(text, _described(main), kind, type, kinds, predicted))
    return found


def _name(number: int) -> str:
    return f"group {number}"


def _described(op: Operation) -> str:
    types = ", ".join(str(value.type) for value in op.operands)
    return f"{kind_name(op)} {types}"


def middle_and_spread(seconds: list[float]) -> tuple[float, float]:
    """Return the median, and the distance of the quartiles as a part of it."""
    middle = median(seconds)
    low, high = np.quantile(seconds, [0.25, 0.75])
    return middle, float(high - low) / middle if middle else 0.0
