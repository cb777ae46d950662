"""`inline`: puts the bodies of a model's own functions where it calls them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.clusters import MARKS, device_name, placement_of, set_placement
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError, Note

MOST_OPS = 1 << 20
"""Calls of functions that call others twice could make any number of ops."""


@dataclass(frozen=True)
class InlinePass(ModulePass):
    """Replaces every call of a function of the module by its body, and erases what it called.

    In: functions of one block. Out: functions without calls; private functions that were called are
    gone. The ops of a body are also named after the call, so that ops of two calls differ. They run
    on the call's `braid.device` and `braid.cluster` unless they have their own. Each call gets new
    clusters for those in the body. Raises `BraidError` for a function that calls itself, has no
    body or several blocks, and where more than 2^20 ops would arise.

    ```mlir
    %y = func.call @block(%x) {braid.name = "first"} : (tensor<4xf32>) -> tensor<4xf32>
    // becomes, where the body of @block is an op named "norm",
    %y = braid.exp %x {braid.name = "first/norm"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline callees first, so that each body is complete when it is copied."""
        functions = {f.sym_name.data: f for f in op.ops if isinstance(f, FuncOp)}
        calls = {name: _calls(function) for name, function in functions.items()}
        if not any(calls.values()):
            return
        called = {call.callee.string_value() for found in calls.values() for call in found}
        free = count(1 + max(_clusters(op), default=-1))
        for name in _callees_first(functions, calls):
            for call in calls[name]:
                _inline(call, _callee(call, functions), free)
            _check_size(functions[name])
        for name in called:
            if functions[name].sym_visibility == StringAttr("private"):
                functions[name].detach()
                functions[name].erase()


def _calls(function: FuncOp) -> list[CallOp]:
    return [op for op in function.walk() if isinstance(op, CallOp)]


def _callees_first(functions: dict[str, FuncOp], calls: dict[str, list[CallOp]]) -> list[str]:
    """Return the names of all functions, each after those that it calls; without recursion."""
    order: list[str] = []
    done: set[str] = set()
    for root in functions:
        path: dict[str, CallOp | None] = {}
        stack: list[tuple[str, CallOp | None, bool]] = [(root, None, False)]
        while stack:
            name, via, finished = stack.pop()
            if finished:
                del path[name]
                done.add(name)
                order.append(name)
            elif name in path:
                assert via is not None
                raise BraidError(
                    f"'@{name}' calls itself",
                    location=source_location(via),
                    notes=[
                        Note(f"'@{other}' is on the way", source_location(functions[other]))
                        for other in path
                        if other != name
                    ],
                    hint="write recursion as a loop (scf.while)",
                )
            elif name not in done:
                path[name] = via
                stack.append((name, via, True))
                stack += [
                    (_callee(call, functions).sym_name.data, call, False)
                    for call in reversed(calls[name])
                ]
    return order


def _callee(call: CallOp, functions: dict[str, FuncOp]) -> FuncOp:
    name = call.callee.string_value()
    function = functions.get(name)
    if function is None or len(function.body.blocks) != 1:
        problem = (
            "is not in the module"
            if function is None
            else f"has {len(function.body.blocks)} blocks, expected 1"
        )
        raise BraidError(
            f"the model calls '@{name}', which {problem}",
            location=source_location(call),
            hint="give the function a body of one block; write branches as scf.if",
        )
    return function


def _clusters(module: ModuleOp) -> Iterator[int]:
    return (p.cluster for op in module.walk() if (p := placement_of(op)) is not None)


def _inline(call: CallOp, function: FuncOp, free: Iterator[int]) -> None:
    """Copy the body in front of the call, its clusters with `free` numbers, and erase it."""
    block, outer = function.body.block, call.parent
    assert outer is not None
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, call.operands, strict=True))
    prefixes = names_of(call)
    numbers: defaultdict[int, int] = defaultdict(lambda: next(free))
    results: Sequence[SSAValue] = ()
    for op in block.ops:
        if isinstance(op, ReturnOp):
            results = [mapping.get(value, value) for value in op.operands]
            break
        copy = op.clone(mapping)
        for inner in copy.walk():
            _rename(inner, prefixes)
            if (placement := placement_of(inner)) is not None:
                set_placement(inner, replace(placement, cluster=numbers[placement.cluster]))
            elif inner.operands and isinstance(inner, TensorOp | FusedOp):
                _place(inner, call)
        outer.insert_op_before(copy, call)
        mapping.update(zip(op.results, copy.results, strict=True))
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    call.detach()
    call.erase()


def _place(op: Operation, call: CallOp) -> None:
    """Let `op` run where the call does, unless it is for another device."""
    if device_name(op) in (None, device_name(call)):
        op.attributes |= {name: a for name in MARKS if (a := call.attributes.get(name)) is not None}


def _rename(op: Operation, prefixes: Sequence[str]) -> None:
    names = names_of(op)
    if names and prefixes:
        set_names(op, [f"{prefix}/{name}" for prefix in prefixes for name in names])


def _check_size(function: FuncOp) -> None:
    for number, _ in enumerate(function.walk()):
        if number > MOST_OPS:
            raise BraidError(
                f"'@{function.sym_name.data}' would have more than {MOST_OPS} ops",
                location=source_location(function),
                hint="its functions call each other too often",
            )
