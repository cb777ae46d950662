"""Kernels of GPUs, run by the emulator."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Attribute

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.gpu.call import Counts, call_emulated
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble
from braid.lowering.gpu.codegen.messages import Compiled, Request
from braid.lowering.gpu.codegen.worker import answer
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.launch.launches import Launch, Launches
from braid.lowering.host.codegen.target_machine import host_machine
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.gpus import gpu_machine
from braid.targets.machines.machine import Machine
from test.run.fallback.conftest import (
    Build,
    compare_results,
    logical_array,
    make_group,
    random_input,
    store,
    stored_arrays,
)
from test.run.fallback.conftest import cache as cache
from test.run.gpu import kernel_models
from test.run.gpu.error_bounds import compare_bounded, evaluate_bounded
from test.schedules import emitted


def pytest_configure(config: pytest.Config) -> None:
    """Read from the command line what else happens to kernels."""
    kernel_models.choose(config)


Emit = Callable[[FusedOp, str], GpuKernel]


def gpu(architecture: str) -> Machine:
    return gpu_machine(architecture)


SMALL = {
    "rows": 64,
    "columns": 64,
    "depth": 64,
    "stages": 3,
    "warp_rows": 32,
    "warp_columns": 32,
}
PLAIN = {**SMALL, "warp_columns": 64}
"""The smallest tiles of tensor cores and of f32: the fewest threads to emulate."""


def hopper(processors: int = 2) -> Machine:
    """With so few multiprocessors that blocks compute several tiles."""
    return gpu_machine("sm_90a", {"multiprocessors": float(processors)})


def hopper_emitter(
    family: Callable[[Machine], Any], schedule: Entries | None, processors: int
) -> Callable[[FusedOp, str], GpuKernel]:
    """Kernels of a family, by default with its first schedule, that copy by tensor maps."""

    def emit(group: FusedOp, symbol: str) -> GpuKernel:
        found = family(hopper(processors)).match(group)
        assert found is not None
        made = emitted(found, schedule, symbol=symbol)
        assert isinstance(made, GpuKernel)
        # Entries of other kinds may come before, as what finds out what masks leave out.
        assert any(one.tensor_maps for one in made.launches.launches), "it copies no tensors"
        return made

    return emit


def made_by_tiles(kernel: Kernel) -> GpuKernel:
    """Return the kernel of a product, after a check that it is not the generic one."""
    assert isinstance(kernel, GpuKernel)
    # Behind it may be the sums of split depths.
    assert kernel.launches.launches[0].shared_bytes > 0, "it is not made by tiles"
    return kernel


def spilled_bytes(kernel: Kernel, architecture: str) -> int:
    """Return the bytes that all entries spill, by the assembler for an architecture."""
    assert isinstance(kernel, GpuKernel)
    (code,) = compile_gpu_kernels([kernel], gpu(architecture), host_machine(), jobs=1)
    used = assemble(code.ptx, architecture).resources.values()
    return sum(own.spilled_bytes for own in used)


_counts: list[Counts] = []


def conflicts() -> int:
    """Conflicts of banks in kernels that were run since this was asked last."""
    total = sum(one.conflicts for one in _counts)
    _counts.clear()
    return total


def moved_bytes() -> tuple[int, ...]:
    """Return the bytes that the last kernel moved, by buffer."""
    return _counts[-1].moved


def _elsewhere(array: Array) -> Array:
    """Return a copy that begins one element after a multiple of 16 bytes."""
    memory = np.empty(array.nbytes + 32, np.uint8)
    start = -memory.ctypes.data % 16 + array.itemsize
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def run_kernel(
    kernel: GpuKernel, group: FusedOp, inputs: Sequence[Array], unaligned: bool = False
) -> list[Array]:
    """Return the results as stored."""
    stored, outputs = stored_arrays(group, inputs)
    (code,) = compile_gpu_kernels([kernel], gpu("sm_80"), host_machine(), jobs=1)
    if unaligned:
        stored, outputs = [list(map(_elsewhere, arrays)) for arrays in (stored, outputs)]
    _counts.append(call_emulated(code.emulated, kernel.launches, [*stored, *outputs]))
    return outputs


def compare_with_bounds(group: FusedOp, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Whether results, as stored, are within their bounds of those in f64; tails are zeros."""
    expected = evaluate_bounded(group, inputs)
    for actual, reference, value in zip(outputs, expected, group.terminator.arguments, strict=True):
        layout = layout_of(value.type)
        logical = logical_array(actual, layout, reference.value.shape)
        compare_bounded(logical, reference, value.owner.name)
        np.testing.assert_array_equal(actual, store(logical, layout), "tail is not zero")


def check_group(
    group: FusedOp,
    emit: Emit,
    inputs: Mapping[int, Array] | None = None,
    seed: int = 0,
    unaligned: bool = False,
    compare: Callable[..., None] = compare_with_bounds,
) -> GpuKernel:
    """Compare a kernel with the semantics of its ops, on random inputs, with `inputs` given."""
    kernel = emit(group, "tested")
    generator = np.random.default_rng(seed)
    arrays = [
        (inputs or {}).get(i, random_input(type, generator))
        for i, type in enumerate(group.inputs.types)
    ]
    outputs = run_kernel(kernel, group, arrays, unaligned)
    compare(group, arrays, outputs)
    if kernel_models.chosen is not None:
        kernel_models.chosen.take(
            kernel, group, arrays, outputs, partial(compare, group, arrays), unaligned
        )
    return kernel


def compiled_text(text: str, launches: Launches, architecture: str = "sm_80") -> Compiled:
    """Return the code of a kernel written by hand in the `gpu` dialect."""
    found = answer(Request(text, launches, gpu(architecture), host_machine()))
    assert not isinstance(found, str), found
    return found


def run_text(body: str, arrays: Sequence[Array], *, threads: int, blocks: int = 1) -> None:
    """Run `gpu.func @entry`, with one operand, `%x`, and one result, `%y`, by the emulator."""
    types = [f"memref<{a.size}x{ {4: 'f32', 2: 'bf16', 1: 'i8'}[a.itemsize] }>" for a in arrays]
    text = f"""module {{ gpu.module @kernels {{
gpu.func @entry(%x: {types[0]}, %y: {types[1]}){body.partition("{")[0]} kernel
    attributes {{known_block_size = array<i32: {threads}, 1, 1>}} {{
  {body.partition("{")[2].rpartition("}")[0]}
  gpu.return
}} }} }}"""
    sizes = tuple(a.nbytes for a in arrays)
    launches = Launches("tested", (Launch("entry", blocks, threads, (0, 1)),), sizes, 1)
    call_emulated(compiled_text(text, launches).emulated, launches, arrays)


@pytest.fixture(scope="session")
def check() -> Callable[..., GpuKernel]:
    """Use the check of the tests of the CPU's fallback, which run again here on the GPU's."""

    def check(
        types: Sequence[Attribute],
        build: Build,
        *,
        layouts: Sequence[str | None] = (),
        inputs: Mapping[int, Array] | None = None,
        every: bool = False,
    ) -> GpuKernel:
        group = make_group(types, build, layouts, every)
        kernel = check_group(group, emit_fallback, inputs or {}, compare=compare_results)
        kernel.module.verify()
        return kernel

    return check
