"""Collect the code that braid emits for one model, target and CPU, as files by name."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from benchmarks.fpga.polybench import selected
from braid.driver.lowered_model import all_parameters
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for, passes_within
from braid.driver.read_source import ModelSource, read_source
from braid.lowering.common.generic_text import module_text
from braid.lowering.fpga.floats.project import text_of
from braid.lowering.fpga.operators import vitis_operators
from braid.lowering.gpu.backend import GpuKernels
from braid.lowering.host.descriptor import descriptor_module
from braid.lowering.host.model_code import (
    DevicePart,
    emit_parts,
    features_of,
    lower_model,
    plan_memory,
)
from braid.lowering.host.variants import DeviceFacts, describe, emit_programs, launched_functions
from braid.lowering.npu.backend import NpuKernels
from braid.lowering.npu.tile_library import LIBRARY
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import BraidError
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target
from braid.universe import make_context

DIGITS = 8
"""Of a digest, in hexadecimal: enough to see that something has changed."""

STAGES = {"cpu": ("linalg",), "fpga": ("hls", "hls-cpp", "verilog"), "npu": ("stream-text",)}
"""The stages of backends at which functions or kernels are text before code generation."""

_SYMBOL = re.compile(r'sym_name = "([^"]*)"')

File = tuple[str, str | bytes]
"""A kernel, program or other file: its name and its content."""


def emitted(source: ModelSource, target: str, cpu: str, *, compiled: bool) -> list[File]:
    """Return each kernel, program and file that a model becomes.

    With `compiled`, objects, PTX and streams in bytes are included. A model that the target
    refuses becomes the message.
    """
    try:
        return list(_files(source, target, cpu, compiled=compiled))
    except BraidError as error:
        return [("refusal", str(error))]


def emitted_floats(kernel: str, dsps: int) -> list[File]:
    """Return the HLS C++ of a kernel of Polybench, within a budget of DSPs."""
    return [("hls-cpp", text_of(selected(kernel, dsps, vitis_operators()).design))]


def digest(data: str | bytes) -> str:
    """Return the first digits of SHA-256."""
    content = data.encode() if isinstance(data, str) else data
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _files(source: ModelSource, target: str, cpu: str, *, compiled: bool) -> Iterator[File]:
    context = make_context()
    model = read_source(context, source, target=target, cpu=cpu)
    module, described = model.module, target_of(model.module)
    searches = any(backend.issue is not None for backend in described.backends)
    options = CompileOptions(jobs=1, order_seconds=0.0 if searches else None)
    passes = passes_within(options, passes_for(module), described)
    run_pipeline(context, module, passes, verify=False)
    weights = partial(all_parameters, model)
    if compiled:
        code = lower_model(context, module.clone(), described, jobs=1, weights=weights)
        yield from ((f"object {number}", data) for number, data in enumerate(code.objects))
        for number, own in enumerate(code.devices):
            if own.code.kind != LIBRARY:  # which the system's linker has made
                yield f"{own.device} {own.code.kind} {number}", b"".join(own.code.parts)
    parts = emit_parts(module, described, 1, weights)
    plan_memory(context, module)
    yield from _program_files(module, described, parts)
    for part in parts:
        yield from ((f"{part.job.device.name} {name}", data) for name, data in _files_of(part))


def _program_files(module: ModuleOp, target: Target, parts: Sequence[DevicePart]) -> Iterator[File]:
    """Yield the host program with the offsets of its buffers, and `@prepare` for weights."""
    names = [part.job.device.name for part in parts]
    names += [name for _, name in launched_functions(module)]
    devices = {name: DeviceFacts(target.device(name).plugin, True) for name in names}
    programs = emit_programs(module, devices)
    for number, program in enumerate(programs.modules):
        yield f"program {number}", module_text(program)
    features = features_of(parts, target.host_device.machine)
    yield "descriptor", descriptor_module(describe(module, devices, features, programs))
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data.startswith("prepare"):
            yield op.sym_name.data, str(op)


def _files_of(part: DevicePart) -> Iterator[File]:
    """Yield the kernels of a device, or the code of its functions."""
    kernels = part.kernels
    if isinstance(kernels, GpuKernels):
        for own in kernels.architectures:
            for kernel in own.kernels:
                launches = f"{kernel.launches} {kernel.scratch_bytes} {kernel.in_place}"
                yield f"{own.machine.cpu} {kernel.symbol}", module_text(kernel.module) + launches
        return
    if isinstance(kernels, NpuKernels):
        for symbol, group in kernels.streamed.items():
            yield f"stream {symbol}", f"{group.stream} {group.tensors} {group.results}"
        yield from _named(kernels.emitted.at("linalg", part.functions))
    for stage in STAGES.get(part.job.device.backend, ()):
        texts = kernels.at(stage, part.functions)
        if stage == "linalg":
            yield from _named(texts)
        else:
            yield from ((f"{stage} {number}", text) for number, text in enumerate(texts))


def _named(texts: Sequence[str | bytes]) -> Iterator[File]:
    """Kernels of the host by their symbols, which are not part of the compiled code."""
    for text in texts:
        assert isinstance(text, str)
        found = _SYMBOL.search(text)
        symbol = "" if found is None else found.group(1)
        yield symbol, text.replace(f'"{symbol}"', '""')
