"""Lowering a model by the passes that were decided on: to code, or to a stage before it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, passing_on_remarks
from braid.analysis.execution.inter_op_streams import inter_op_stream_count
from braid.dialects.braid.decided_sizes import decides_sizes
from braid.dialects.braid.ports import input_names
from braid.dialects.braid.settings import write_settings
from braid.dialects.braid.sizes import is_open, likely_sizes, value_sizes
from braid.dialects.braid.variants import public_functions, variant_sizes
from braid.driver.lowered_model import LoweredModel, all_parameters
from braid.driver.memory_budget import check_budget, fits, report_thresholds, with_budget
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for, passes_within
from braid.driver.sources.signature import check_model
from braid.driver.sources.source_model import SourceModel
from braid.driver.untuned import selecting_passes
from braid.lowering.host.model_code import lower_model
from braid.lowering.host.stages import emit_stage, stages_of
from braid.lowering.host.variants import model_functions
from braid.passes.infrastructure.reproducer import run_reproducibly
from braid.passes.schedules.select_schedules import SelectSchedulesPass
from braid.passes.storage.memory_report import memory_report
from braid.runtime.manifest import RecordCount
from braid.support.diagnostics import Diagnostic, emit
from braid.support.distribution import install_command
from braid.support.entry_points import FAMILIES_GROUP, family_backends
from braid.support.errors import BraidError, UnsupportedError
from braid.support.option_names import Value, option_text
from braid.support.settings import Kernels, Numerics
from braid.support.shared_objects import ONEDNN, OPENBLAS, loaded_library
from braid.targets.machines.load import load_target, target_names
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class Lowering:
    """Lowers the result of `read` by `options`; a crash in a pass leaves a reproducer."""

    context: Context
    read: Callable[[], SourceModel]
    options: CompileOptions

    def within(self, budget: int | None, chosen: Sequence[ModulePass] | None) -> LoweredModel:
        """Return the model lowered by the passes `chosen`, or the default ones.

        Thresholds that make a plan larger, as where fusion stored less, are left out. If it needs
        more than `budget` bytes, it is lowered again with recomputation, and if that is not enough,
        without kernels that need large scratch memory (Winograd's).
        """
        model = self.read()
        target = known_target(model.module)
        check_model(model.module)
        _check_open(model.module, budget, int(self.options.inter_op_threads))
        if target.settings.kernels is Kernels.LIBRARY:
            warn_without_library()
        default = passes_for(model.module) if chosen is None else chosen
        passes = passes_within(self.options, default, target)
        lowered = self._lower(model, passes)
        if self.options.recompute is not None:
            plain = passes_within(replace(self.options, recompute=None), default, target)
            without = self._lower(self.read(), plain)
            if report_thresholds(lowered.memory, without.memory):
                passes, lowered = plain, without
        if budget is not None and not fits(lowered.memory, budget):
            # Without recomputation it was too much; the kernels that are the same are at hand.
            frugal = with_budget(passes, budget)
            lowered = self._lower(self.read(), frugal)
            if not fits(lowered.memory, budget) and not target.settings.is_strict:
                strictly = replace(self, read=partial(_strict, self.read))
                lowered = strictly._lower(strictly.read(), frugal)
            check_budget(lowered.memory, budget)
        return lowered

    def _lower(self, model: SourceModel, passes: Sequence[ModulePass]) -> LoweredModel:
        module = model.module
        target = target_of(module)
        with passing_on_remarks() as remarks:
            run_reproducibly(self.context, module, passes, lambda: self.read().module)
        code = lower_model(
            self.context,
            module,
            target,
            jobs=self.options.jobs,
            profile=self.options.profile,
            weights=partial(all_parameters, model),
        )
        functions = model_functions(module)
        reports = tuple(memory_report(f) for f in functions if not is_open(f))
        return LoweredModel(model, target, code, reports, _record_count(remarks, target))

    def at_stage(self, stage: str) -> str | bytes:
        """Return the model at a stage. Raises BraidError for one that its target does not have."""
        model = self.read()
        module = model.module
        check_model(module)
        target = known_target(module)
        known = stages_of(target)
        if stage not in known:
            raise BraidError(
                f"there is no stage {stage!r} for '{target.name}'", hint=f"expected one of {known}"
            )
        passes = passes_within(self.options, passes_for(module), target)
        run_reproducibly(self.context, module, passes, lambda: self.read().module)
        return emit_stage(
            self.context,
            module,
            target,
            stage,
            jobs=self.options.jobs,
            profile=self.options.profile,
            weights=partial(all_parameters, model),
        )


def _check_open(module: ModuleOp, budget: int | None, streams: int) -> None:
    """Raise UnsupportedError for open sizes where code or a promise needs numbers."""
    by_data = decides_sizes(module)
    if not is_open(module) and not by_data:
        return
    hint = f"give the sizes of the inputs, such as {_fixing_options(module)}"
    if by_data:
        hint = "data decide sizes of the model: compile it with no other promise"
    functions = public_functions(module)
    if max(streams, *map(inter_op_stream_count, functions)) > 1:
        raise UnsupportedError("kernels of open sizes do not run side by side", hint=hint)
    if any(map(variant_sizes, functions)):
        raise UnsupportedError("a variant for some sizes has open sizes", hint=hint)
    if budget is not None:
        raise UnsupportedError("a memory budget is for models of known sizes", hint=hint)


def _fixing_options(module: ModuleOp) -> str:
    """Return options that fix the open dims of a model, and the inputs that hold sizes."""
    dims, constants = likely_sizes(module), dict[str, Value]()
    for function in public_functions(module):
        for name, values in zip(input_names(function), value_sizes(function), strict=True):
            if values:
                constants[name] = [dims.pop(own, 1) for own in values]
    texts = [option_text("dims", dims)] if dims else []
    return " ".join([*texts, *([option_text("constants", constants)] if constants else [])])


def _strict(read: Callable[[], SourceModel]) -> SourceModel:
    """Return the result of `read`, with strict numerics."""
    model = read()
    write_settings(model.module, {"numerics": Numerics.STRICT})
    return model


def warn_without_library() -> None:
    """Warn that all kernels are generated if no vendor library can be loaded."""
    if any(loaded_library(name) is not None for name in (ONEDNN, OPENBLAS)):
        return
    emit(
        Diagnostic(
            "warning",
            f"kernels of a library are requested, but neither '{ONEDNN}' nor '{OPENBLAS}' "
            "can be loaded: braid generates all kernels",
            hint=f"{install_command('onednn')}, or put a library's directory into LD_LIBRARY_PATH",
        )
    )


def _record_count(remarks: Sequence[Remark], target: Target) -> RecordCount:
    """Count the records that passes which select and search schedules speak of."""
    counts: Counter[str] = Counter()
    speaking = {SelectSchedulesPass.name, "tune-schedules", *selecting_passes(target)}
    for remark in remarks:
        if remark.pass_name in speaking:
            counts.update({k: v for k, v in remark.data.items() if isinstance(v, int)})
    return RecordCount(counts["known"], counts["groups"], counts["searched"])


def known_target(module: ModuleOp) -> Target:
    """Return the target of this module; warn of kernel families that no target uses.

    Raises:
        BraidError: there is no such target.

    """
    target = target_of(module)
    _warn_of_lost_families(target)
    return target


def _warn_of_lost_families(target: Target) -> None:
    """Warn of installed families for backends that neither `target` nor a target by name has."""
    lost = family_backends() - {backend.name for backend in target.backends}
    if not lost:
        return
    known = {backend.name for name in target_names() for backend in load_target(name).backends}
    for name in sorted(lost - known):
        emit(
            Diagnostic(
                "warning",
                f"entry points of '{FAMILIES_GROUP}.{name}' are for no backend of a known target",
                hint=f"backends are {', '.join(sorted(known))}",
            )
        )
