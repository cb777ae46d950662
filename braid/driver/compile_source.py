"""Compiling a model from any source: to one that can be called, or to a stage of its lowering."""

from contextlib import suppress
from functools import partial

from braid.driver.artifact_slot import ArtifactSlot
from braid.driver.lower_source import Lowering
from braid.driver.lowered_model import LoweredModel, package_of, write_lowered
from braid.driver.memory_budget import parse_budget
from braid.driver.options import DEFAULTS, CompileOptions
from braid.driver.pipeline import as_passes
from braid.driver.read_source import ModelSource, read_to_compile
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.descriptor import SYMBOL
from braid.passes.infrastructure.context import make_context
from braid.runtime.device_plugins import emulating, register_plugins
from braid.runtime.executors import NativeExecutor
from braid.runtime.model import Model, model_of, saved_model
from braid.runtime.native import NativeModel, cpu_supports
from braid.runtime.state_order import in_model_order
from braid.support.diagnostics import passing_on_diagnostics
from braid.support.errors import BraidError
from braid.support.forks import compiling
from braid.support.shared_objects import need_libraries
from braid.targets.machines.cpus import NATIVE, cpu_machine, needed_features
from braid.targets.machines.machine import Machine


@compiling()
def compile_source(
    source: ModelSource, options: CompileOptions = DEFAULTS, slot: ArtifactSlot | None = None
) -> Model:
    """Compile a model, and keep it in `slot`, where there is one and nothing was warned of.

    Models that passes warn of are compiled each time, so that the warnings are seen.

    Raises:
        BraidError: as `braid.compile`.

    """
    options.check()
    budget = None if options.memory_budget is None else parse_budget(options.memory_budget)
    chosen = None if options.passes is None else as_passes(options.passes)
    with passing_on_diagnostics() as warned:
        lowered = _lowering(source, options).within(budget, chosen)
    kept = None
    if slot is not None and not any(each.severity == "warning" for each in warned):
        weights_bytes = lowered.code.description.weights_bytes
        kept = slot.keep(partial(write_lowered, lowered), weights_bytes)
    machine = lowered.target.host_device.machine
    reason = missing_here(machine) if options.load else None
    if reason is not None or not options.load:
        package = package_of(lowered) if kept is None else kept
        if reason is None:
            return saved_model(package)
        return saved_model(
            package,
            f"the model is compiled for CPU '{machine.name}' and cannot run here: {reason}",
            "save it and run it there, or compile it without a CPU",
        )
    if kept is not None:
        with suppress(BraidError):  # a system may run no code from files; what else is wrong stays
            return model_of(kept.artifact, kept, options.threads)
    return _load(lowered, options)


def emit_model(source: ModelSource, stage: str, options: CompileOptions = DEFAULTS) -> str | bytes:
    """Return the model at a stage of its lowering: mlir, linalg, llvm, asm (text), obj (bytes).

    The backends of the target may have further ones.

    Raises:
        BraidError: as `braid.compile`, or there is no such stage.

    """
    options.check()
    return _lowering(source, options).at_stage(stage)


def _lowering(source: ModelSource, options: CompileOptions) -> Lowering:
    """Return the object that lowers the model with these options."""
    context = make_context()
    read = partial(read_to_compile, context, source, options)
    return Lowering(context, read, options)


def _load(lowered: LoweredModel, options: CompileOptions) -> Model:
    """Load the model in this process."""
    code, package = lowered.code, package_of(lowered)
    need_libraries(code.libraries, "the model")
    loaded = load_objects(code.objects)
    manifest = package.manifest
    if manifest.runs_on:
        register_plugins()
    with emulating(lowered.target.settings.emulate):
        native = NativeModel.from_descriptor(loaded.address(SYMBOL), package.weights, loaded)
    streams, state = manifest.inter_op_streams, manifest.state
    executor = NativeExecutor(native, options.threads, streams, state)
    inputs = in_model_order(manifest.inputs, state)
    outputs = in_model_order(manifest.outputs, state)
    return Model(inputs, outputs, executor, manifest.arena_bytes, package)


def missing_here(machine: Machine) -> str | None:
    """Return why code for `machine` cannot run in this process, None where it can."""
    here = cpu_machine(NATIVE).architecture
    if machine.architecture != here:
        return f"its code is for {machine.architecture}, this machine is {here}"
    missing = next((name for name in needed_features(machine) if not cpu_supports(name)), None)
    return None if missing is None else f"its code needs '{missing}', which this CPU does not have"
