"""Kernels with open dims are kept with the sizes that they are called with."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.sizes import sized_type
from braid.lowering.cpu.fallback.emit_fallback import VERSION, emit_fallback
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.kernels.elementwise import ElementwiseCandidate
from braid.lowering.host.built_kernels import BuiltKernels, Fallback
from braid.lowering.host.codegen.compiler import compile_anonymous
from braid.passes.outlining.outline_kernels import kernel_function
from braid.support.object_cache import ObjectCache
from braid.support.sizes.expression import symbol
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.measurements import Measurements
from test.machines import HOST
from test.run.kernels.conftest import make_group

BATCH, LENGTH = symbol("batch"), symbol("length")


def gated(x: Any, y: Any) -> Any:
    gate = elementwise("tanh", x)
    result = elementwise("mul", gate.output, y)
    return [gate, result], [result.output]


def built(function: FuncOp, cache: ObjectCache, **likely: int) -> BuiltKernels:
    return BuiltKernels(
        [function],
        KernelChoice(cpu_families(HOST), Measurements({}), likely=likely),
        Fallback(emit_fallback, VERSION),
        partial(compile_anonymous, machine=HOST, jobs=1, cache=cache),
        machine=HOST,
        cache=cache,
        generator="",
    )


def test_a_record_has_the_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = [sized_type(f32, shape) for shape in ((BATCH, LENGTH, 24), (BATCH, 1, 24))]
    function, cache = kernel_function("kernel_0", make_group(types, gated)), ObjectCache(tmp_path)
    first = built(function, cache, batch=1, length=128)
    (needs,), codes = first.needs, first.link([])
    assert {str(size) for size in needs.sizes} == {"length", "24 * length"}
    assert str(needs.grid) == "batch * length"
    emits: list[str] = []
    emit = ElementwiseCandidate.emit
    monkeypatch.setattr(
        ElementwiseCandidate,
        "emit",
        lambda self, symbol, schedule: emits.append(symbol) or emit(self, symbol, schedule),
    )
    again = built(function, cache, batch=1, length=128)
    assert again.needs == first.needs and again.link([]) == codes and not emits
    built(function, cache, batch=64, length=128)
    assert emits, "it may be another kernel at other likely sizes"
