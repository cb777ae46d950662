"""What is asked of a group of many operands grows as they do, counted in lines that run."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.storage.hoist_slices import HoistSlicesPass
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.storage_assignment import StorageAssignment
from braid.targets.costs.op_amounts import amounts_of
from braid.targets.machines.resolve import target_of
from braid.universe import make_context


def lines_of(work: Callable[[], object]) -> int:
    """Return how many lines run in `work`; each round of a comprehension is one."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(former)
    return count


def joined_parts(parts: int) -> ModuleOp:
    """Return a model that splits a matrix by rows and joins them again, as it is stored."""
    part, whole = "tensor<1x4xf32>", f"tensor<{parts}x4xf32>"
    lines = [
        f"%s{i} = braid.slice %x {{offsets = array<i64: {i}, 0>, sizes = array<i64: 1, 4>, "
        f"strides = array<i64: 1, 1>}} : ({whole}) -> {part}\n"
        f"%e{i} = braid.exp %s{i} : ({part}) -> {part}\n"
        for i in range(parts)
    ]
    operands, types = ", ".join(f"%e{i}" for i in range(parts)), ", ".join([part] * parts)
    text = (
        f"func.func @main(%x: {whole}) -> {whole} {{\n{''.join(lines)}"
        f"%y = braid.concat {operands} {{dim = 0 : i64}} : ({types}) -> {whole}\n"
        f"func.return %y : {whole}\n}}"
    )
    context = make_context()
    module = parse_mlir(context, text, "parts.mlir").module
    run_pipeline(context, module, "select-fusion,apply-fusion,select-storage")
    return module


def main_of(module: ModuleOp) -> FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return function


def amounts(module: ModuleOp) -> Callable[[], object]:
    groups = [op for op in module.walk() if isinstance(op, FusedOp)]
    return lambda: amounts_of(max(groups, key=lambda group: len(group.operands)))


def storages(module: ModuleOp) -> Callable[[], object]:
    memories = MemorySpaces(target_of(module))
    return lambda: StorageAssignment(main_of(module), memories)


def hoisting(module: ModuleOp) -> Callable[[], object]:
    return lambda: HoistSlicesPass().apply(make_context(), module)


@pytest.mark.parametrize("work", [amounts, storages, hoisting])
def test_twice_as_many_parts_are_twice_the_work(work) -> None:
    small, large = (lines_of(work(joined_parts(parts))) for parts in (100, 200))
    assert small > 100
    assert large < 2.2 * small
