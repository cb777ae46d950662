"""The target of a module and the device of an op: what every pass, plan and driver asks."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import DEVICE, TARGET
from braid.dialects.braid.attributes import TargetAttr
from braid.dialects.braid.settings import outermost, settings_of
from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import OutsideError, path_beside
from braid.support.option_names import option_text
from braid.targets.machines.load import HOST, load_target
from braid.targets.machines.target import Device, Target

CPU_OPTION = "cpu"
GPU_OPTION = "gpu-arch"


def target_of(op: Operation, override: str | None = None) -> Target:
    """Return the target of the module that `op` is in or is: its `braid.target`, else the host.

    Its devices have the settings of the module. `override` names another target; the options of the
    attribute stay where it names the same.
    Raises `BraidError` for an unknown target or option, and a malformed file.
    """
    attribute = target_attribute(op, override)
    target = resolve_target(attribute.target.data, attribute.strings())
    return target.with_settings(settings_of(op))


def target_attribute(module: Operation, override: str | None = None) -> TargetAttr:
    """Return the `braid.target` that `override` and the module come to."""
    own = _attribute(module)
    if own is not None and override in (None, own.target.data):
        return own
    return TargetAttr.of(override or HOST, {})


def target_name(module: Operation) -> str:
    """Return the name of the target of a module, which need not exist."""
    attribute = _attribute(module)
    return HOST if attribute is None else attribute.target.data


def resolve_target(name: str, options: Mapping[str, str]) -> Target:
    """Return the target of this name with these options.

    `cpu` is the CPU of its host, `gpu-arch` the architecture of its GPUs.

    Raises `BraidError` for an unknown target or option, and a malformed file.
    """
    return _resolved(name, load_target(name), tuple(sorted(options.items())))


def set_target(
    module: ModuleOp, name: str, cpu: str | None = None, gpu_arch: str | None = None
) -> None:
    """Put a target on the module.

    Raises `BraidError` as `resolve_target`.
    """
    given = {CPU_OPTION: cpu, GPU_OPTION: gpu_arch}
    options = {key: value for key, value in given.items() if value is not None}
    resolve_target(name, options)
    module.attributes[TARGET] = TargetAttr.of(name, options)


def confine_target(module: ModuleOp, model: Path | None) -> None:
    """Check that a module from a file names no target file but one in its own directory.

    Its path is relative to `model`, which is None for a module in memory.

    Raises `BraidError` for a file that is elsewhere.
    """
    attribute = _attribute(module)
    if attribute is None or not attribute.target.data.endswith(".toml"):
        return
    name = attribute.target.data
    try:
        if model is None:
            raise OutsideError("is a file, but the model came from memory")
        path = path_beside(model, name)
    except OutsideError as error:
        raise BraidError(
            f"the target '{name}' of the model {error}",
            location=None if model is None else SourceLocation(str(model)),
            hint=f"put the file itself beside the model, or name it by {option_text('target')}",
        ) from error
    module.attributes[TARGET] = TargetAttr.of(str(path), attribute.strings())


def device_of(op: Operation, target: Target) -> Device:
    """Return where `op` runs: the `braid.device` of the op or of an op around it, else the default
    device.

    Raises `BraidError`, with the location of the name, for a device that the target does not have.
    """
    at: Operation | None = op
    while at is not None:
        device = at.attributes.get(DEVICE)
        if isinstance(device, StringAttr):
            try:
                return target.device(device.data)
            except BraidError as error:
                location = source_location(at)
                raise BraidError(error.message, location=location, hint=error.hint) from error
        at = at.parent_op()
    return target.default_device


def runs_on(op: Operation, devices: Collection[str], target: Target) -> bool:
    """Return whether `op` runs on one of `devices`, by name; true if `devices` is empty.

    Raises `BraidError` for a device that the target does not have.
    """
    return not devices or device_of(op, target).name in devices


@lru_cache(maxsize=256)
def _resolved(name: str, target: Target, options: tuple[tuple[str, str], ...]) -> Target:
    for key, value in options:
        if key not in _OPTIONS:
            raise BraidError(
                f"target '{name}' has an unknown option '{key}'",
                hint=f"options of '{TARGET}' are: {', '.join(_OPTIONS)}",
            )
        target = _OPTIONS[key](target, value)
    return target


_OPTIONS = {CPU_OPTION: Target.with_cpu, GPU_OPTION: Target.with_gpu}


def _attribute(op: Operation) -> TargetAttr | None:
    """Return the `braid.target` on the outermost op around `op`."""
    attribute = outermost(op).attributes.get(TARGET)
    return attribute if isinstance(attribute, TargetAttr) else None
