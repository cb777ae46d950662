"""A whole model at the stages of its lowering, for `--emit`."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.lowering.common.upstream import run_upstream_passes, to_llvm_ir
from braid.lowering.host.codegen.link import link_relocatable
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.llvm_text import translate_literals
from braid.lowering.host.codegen.objects import emit_assembly, optimize
from braid.lowering.host.descriptor import descriptor_module
from braid.lowering.host.model_code import (
    DevicePart,
    emit_parts,
    features_of,
    lower_model,
    plan_memory,
)
from braid.lowering.host.variants import DeviceFacts, describe, emit_programs, launched_functions
from braid.support.errors import BraidError
from braid.support.llvm_bindings import llvm
from braid.support.option_names import option_text
from braid.targets.backend import Weights
from braid.targets.backends import backend, backend_of
from braid.targets.machines.target import Target

SEPARATOR = "// -----\n"


class HostStage(StrEnum):
    """Stages of the host program, with the kernels that it calls."""

    MLIR = "mlir"
    """The graph after all passes: kernels outlined, memory planned."""

    LINALG = "linalg"
    """Kernels and program in upstream dialects, one module each."""

    LLVM = "llvm"
    """LLVM IR of the whole model, optimized."""

    ASM = "asm"
    OBJ = "obj"
    """One relocatable object that defines `braid_model`."""


def stages_of(target: Target) -> tuple[str, ...]:
    """Return the stages of a model for `target`, with those of its backends last."""
    own = (stage for one in target.backends for stage in _stages(one.name, target))
    return tuple(dict.fromkeys([*HostStage, *own]))


def emit_stage(
    ctx: Context,
    module: ModuleOp,
    target: Target,
    stage: str,
    *,
    jobs: int | None = None,
    profile: bool = False,
    weights: Callable[[], Weights] = dict,
) -> str | bytes:
    """Return the model at a stage, one of `stages_of`: bytes for an object, text for all others.

    `module` is what `outline-kernels` leaves; memory is planned in it. Raises BraidError where a
    kernel cannot be compiled, a backend does not have the stage, or there is no C compiler to join
    the objects.
    """
    if stage == HostStage.OBJ:
        return link_relocatable(
            lower_model(ctx, module, target, jobs=jobs, profile=profile, weights=weights).objects
        )
    parts = emit_parts(module, target, jobs, weights)
    if stage not in tuple(HostStage):
        # A backend's own stage shows its part of a model that is split over several.
        having = [part for part in parts if stage in _stages_of(part)]
        if not having and stage in stages_of(target):
            raise _nothing_at(stage, parts, target)
        return _joined([own for part in having or parts for own in _at(part, stage)], stage)
    plan_memory(ctx, module)
    if stage == HostStage.MLIR:
        module.verify()
        return str(module) + "\n"
    names = [part.job.device.name for part in parts]
    names += [name for _, name in launched_functions(module)]
    devices = {name: DeviceFacts(target.device(name).plugin, True) for name in names}
    programs = emit_programs(module, devices, profile=profile)
    kernels = _texts(parts, HostStage.LINALG)
    if stage == HostStage.LINALG:
        readable = [run_upstream_passes(text, ()) for text in kernels]
        return SEPARATOR.join([*readable, *(str(program) + "\n" for program in programs.modules)])
    machine = target.host_device.machine
    texts = [*kernels, *map(str, programs.modules)]
    whole = llvm.parse_assembly(
        descriptor_module(describe(module, devices, features_of(parts, machine), programs))
    )
    for text in texts:
        whole.link_in(llvm.parse_assembly(translate_literals(to_llvm_ir(text, LLVM_PASSES))))
    return (optimize if stage == HostStage.LLVM else emit_assembly)(str(whole), machine)


def _nothing_at(stage: str, parts: Sequence[DevicePart], target: Target) -> BraidError:
    """Return the error for a stage of backends that have no part of the model."""
    used = ", ".join(part.job.device.name for part in parts)
    able = next(one.name for one in target.backends if stage in _stages(one.name, target))
    return BraidError(
        f"nothing of the model has stage '{stage}': it runs on {used}",
        hint=f"{option_text('pin', [f'op:conv={able}'])} says why '{able}' does not run a "
        "'conv', and so on",
    )


def _joined(found: Sequence[str | bytes], stage: str) -> str | bytes:
    """Join texts, one after the other; bytes only alone.

    Raises BraidError for none and for several.
    """
    if len(found) == 1:
        return found[0]
    texts = [text for text in found if isinstance(text, str)]
    if not found or len(texts) < len(found):
        raise BraidError(
            f"the model has {len(found)} parts at stage '{stage}', expected one",
            hint="the artifact holds all of them",
        )
    return SEPARATOR.join(texts)


def _texts(parts: Sequence[DevicePart], stage: str) -> list[str]:
    """Return the kernels of all devices at a stage that is text."""
    return [text for part in parts for text in _at(part, stage) if isinstance(text, str)]


def _stages_of(part: DevicePart) -> Sequence[str]:
    return backend_of(part.job.device).stages


def _stages(name: str, target: Target) -> Sequence[str]:
    """Return the stages of the backend of this name."""
    return backend(name, target.settings).stages


def _at(part: DevicePart, stage: str) -> Sequence[str | bytes]:
    """Return a device's content at a stage; raises BraidError if its backend does not have the
    stage."""
    name, known = part.job.device.backend, _stages_of(part)
    if stage not in known:
        names = ", ".join(f"'{one}'" for one in known) or "none"
        raise BraidError(f"backend '{name}' has no stage '{stage}' to emit, only {names}")
    return part.kernels.at(stage, part.functions)
