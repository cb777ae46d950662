"""From a module after `outline-kernels` to code: kernels by their backends, plan, host program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FloatAttr, ModuleOp

from braid.dialects.braid.attribute_names import STAGE_SECONDS
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.launch import LaunchOp
from braid.dialects.braid.variants import device_functions, program_functions
from braid.lowering.common.generic_text import module_text
from braid.lowering.host.codegen.compiler import (
    available_cpus,
    compile_llvm_ir,
    compile_program,
)
from braid.lowering.host.descriptor import LoadedCode, ModelDescription, descriptor_module
from braid.lowering.host.kernel_needs import annotate_kernels, kernel_functions
from braid.lowering.host.variants import DeviceFacts, describe, emit_programs, launched_functions
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.support.errors import BraidError
from braid.support.object_cache import default_cache
from braid.targets.backend import OBJECT, Code, EmittedKernels, Job, Weights
from braid.targets.backends import backend_of
from braid.targets.machines.cpus import needed_features
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class DeviceCode:
    """Code that the device `device` loads for itself, beside the objects of the host."""

    device: str
    code: Code


@dataclass(frozen=True)
class ModelCode:
    """Objects that together define `braid_model`, and the contents of the descriptor.

    `devices` is the code of other kinds. Which weight stands where is written on the parameters
    and constants of the module (`braid.buffers`). `libraries` are the names of shared libraries
    that the objects call.
    """

    objects: tuple[bytes, ...]
    devices: tuple[DeviceCode, ...]
    description: ModelDescription
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class DevicePart:
    """The functions of a model that run on one device, and the kernels they call."""

    job: Job
    functions: tuple[func.FuncOp, ...]
    kernels: EmittedKernels

    def codes(self) -> Sequence[Code]:
        """Return the code of the functions, whose memory is planned."""
        return self.kernels.link(self.functions)


def lower_model(
    ctx: Context,
    module: ModuleOp,
    target: Target,
    *,
    jobs: int | None = None,
    profile: bool = False,
    weights: Callable[[], Weights] = dict,
) -> ModelCode:
    """Emit all kernels, plan memory (in place, as attributes), and compile kernels and program.

    `module` is what `outline-kernels` leaves; `weights` are as in `Job`. Raises BraidError where a
    kernel cannot be compiled, or the backend of a device is not installed.
    """
    machine, cache = target.host_device.machine, default_cache()
    compiled = partial(compile_program, machine=machine, jobs=jobs or available_cpus(), cache=cache)
    parts = emit_parts(module, target, jobs, weights)
    plan_memory(ctx, module)
    codes = [DeviceCode(part.job.device.name, code) for part in parts for code in part.codes()]
    devices = device_facts(module, target, codes)
    programs = emit_programs(module, devices, profile=profile)
    description = describe(module, devices, features_of(parts, machine), programs)
    return ModelCode(
        (
            *(data for own in codes if own.code.kind == OBJECT for data in own.code.parts),
            *map(compiled, map(module_text, programs.modules)),
            compile_llvm_ir(descriptor_module(description), machine=machine, cache=cache),
        ),
        tuple(own for own in codes if own.code.kind != OBJECT),
        description,
        tuple(dict.fromkeys(name for own in codes for name in own.code.libraries)),
    )


def features_of(parts: Sequence[DevicePart], machine: Machine) -> tuple[str, ...]:
    """Return the features that a CPU must have to run the kernels and the program, sorted."""
    asked = {name for part in parts for need in part.kernels.needs for name in need.features}
    return tuple(sorted({*needed_features(machine), *asked}))


def emit_parts(
    module: ModuleOp,
    target: Target,
    jobs: int | None = None,
    weights: Callable[[], Weights] = dict,
) -> list[DevicePart]:
    """Return the kernels of each device, whose needs are written on their functions.

    Raises BraidError for a kernel that functions on two devices call.
    """
    parts: list[DevicePart] = []
    owner: dict[func.FuncOp, str] = {}
    for device, functions in _by_device(module, target).items():
        job = Job(target, target.device(device), jobs or available_cpus(), weights)
        kernels = kernel_functions(module, functions)
        for kernel in kernels:
            if owner.setdefault(kernel, device) != device:
                raise BraidError(
                    f"kernel '@{kernel.sym_name.data}' runs on '{owner[kernel]}' and '{device}'",
                    hint="outline-kernels makes one for each device",
                )
        emitted = backend_of(job.device).emit(kernels, job)
        annotate_kernels(kernels, emitted.needs)
        parts.append(DevicePart(job, tuple(functions), emitted))
    return parts


def plan_memory(ctx: Context, module: ModuleOp) -> None:
    """Plan the memory of a module with annotated kernels."""
    run_pipeline(ctx, module, [PlanMemoryPass()], verify=False)


def device_facts(
    module: ModuleOp, target: Target, codes: Sequence[DeviceCode]
) -> dict[str, DeviceFacts]:
    """Return the descriptor's entries of the devices on which functions are launched."""
    facts: dict[str, DeviceFacts] = {}
    for function, name in launched_functions(module):
        # Replicas run the code of the device with which they take turns.
        own = [c.code for c in codes if c.device == device_of(function, target).name]
        facts[name] = DeviceFacts(
            target.device(name).plugin,
            any(code.kind == OBJECT for code in own) or not own,
            tuple(LoadedCode(c.kind, b"".join(c.parts)) for c in own if c.kind != OBJECT),
            _expected_seconds(module, own),
        )
    return facts


def _expected_seconds(module: ModuleOp, own: Sequence[Code]) -> dict[str, float]:
    """Return the seconds of a launch by function: as its code says, else as predicted."""
    found = ((f.sym_name.data, f.attributes.get(STAGE_SECONDS)) for f in device_functions(module))
    predicted = {name: own.value.data for name, own in found if isinstance(own, FloatAttr)}
    return predicted | {c.function: c.seconds for c in own if c.function and c.seconds is not None}


def _by_device(module: ModuleOp, target: Target) -> dict[str, list[func.FuncOp]]:
    """Return the functions that are programs, by the device that runs them.

    Functions that launch others run on the host. So do functions that compute nothing, if all
    computation of a device with separate memory is launched.
    """
    found: dict[str, list[func.FuncOp]] = {}
    for function in program_functions(module):
        launches = any(isinstance(op, LaunchOp) for op in function.walk())
        device = device_of(function, target)
        if launches or (device.own_memory and device_name(function) is None):
            device = target.host_device
        found.setdefault(device.name, []).append(function)
    return found
