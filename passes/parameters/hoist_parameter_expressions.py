"""`hoist-parameter-expressions`: what depends on weights alone is computed by `@prepare`.

`@prepare` runs once, when the model is compiled; its results are parameters like any other.
Running the pass again moves what has become computable since, such as new layouts of weights.
"""

import math
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import (
    PREPARE,
    computed_beforehand,
    first_free_key,
    prepared_key,
)
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.clusters import clear_placement
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import dense_is_splat
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.names import union_names
from braid.passes.canonicalize.dead_ops import erase_dead_ops
from braid.support.errors import BraidError


@dataclass
class _Prepare:
    """The body of `@prepare` while it grows: values by key, and copies of moved ops."""

    block: Block = field(default_factory=Block)
    results: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    moved: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    keys: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    next_number: int = 0

    def key_of(self, value: SSAValue) -> str:
        """Return the key under which the known `value` is a parameter."""
        if value not in self.keys:
            key = prepared_key(self.next_number)
            self.next_number += 1
            self.keys[value] = key
            self.results[key] = self._copy(value)
        return self.keys[value]

    def _copy(self, value: SSAValue) -> SSAValue:
        """Copy the expression of `value`, operands first, with a stack of its own."""
        stack = [value]
        while stack:
            owner = cast(Operation, stack[-1].owner)
            missing = [operand for operand in owner.operands if operand not in self.moved]
            if stack[-1] in self.moved:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                self._copy_op(owner)
        return self.moved[value]

    def _copy_op(self, op: Operation) -> None:
        if isinstance(op, ParameterOp) and op.key.data in self.results:
            self.moved[op.output] = self.results[op.key.data]
            return
        copy = op.clone({operand: self.moved[operand] for operand in op.operands})
        for inner in copy.walk():
            clear_placement(inner)  # it runs at compile time, on no device
        self.block.add_op(copy)
        self.moved.update(zip(op.results, copy.results, strict=True))


def _existing(module: ModuleOp) -> _Prepare:
    """Return the `@prepare` of an earlier run, taken out of the module, or an empty one."""
    prepare = _Prepare()
    for func in module.ops:
        if isinstance(func, FuncOp) and func.sym_name.data == PREPARE:
            if PREPARED_KEYS not in func.attributes:
                raise BraidError(
                    f"the module has a function '@{PREPARE}', in whose place weights are computed",
                    location=source_location(func),
                    hint="rename the function",
                )
            block = func.body.block
            last = block.last_op
            assert isinstance(last, ReturnOp)
            keys = cast(ArrayAttr[StringAttr], func.attributes[PREPARED_KEYS])
            names = [key.data for key in keys]
            prepare.results = dict(zip(names, last.arguments, strict=True))
            prepare.next_number = first_free_key(names)
            Rewriter.erase_op(last)
            func.body.detach_block(block)
            prepare.block = block
            Rewriter.erase_op(func)
            break
    return prepare


def _stays(value: SSAValue, reader: Operation) -> bool:
    """Return whether the known `value` is a parameter, or a constant that is a part of kernels.

    Constants of several numbers that are computed with are operands of kernels, as weights are:
    vectors are loaded, not written down.
    """
    op = value.owner
    if not isinstance(op, ConstantOp):
        return isinstance(op, ParameterOp)
    computes = isinstance(reader, ElementwiseOp | ConvOp | MatmulOp)
    return not computes or math.prod(shape_of(value)) < 2 or dense_is_splat(op.value)


class _Hoister:
    def __init__(self, prepare: _Prepare) -> None:
        self._prepare = prepare
        self._expressions = computed_beforehand()
        self._parameters: dict[tuple[Block, str], SSAValue] = {}

    def run(self, func: FuncOp) -> None:
        for op in list(ops_outside_groups(func)):
            if op.results and self._expressions.is_known(op.results[0]):
                continue
            for index, operand in enumerate(op.operands):
                if self._expressions.is_known(operand) and not _stays(operand, op):
                    op.operands[index] = self._source(operand)

    def _source(self, value: SSAValue) -> SSAValue:
        """Return the parameter to read instead of the known `value`."""
        op = cast(Operation, value.owner)
        block = _function_block(op)
        key = self._prepare.key_of(value)
        if (block, key) not in self._parameters:
            parameter = ParameterOp.of(key, cast(AnyTensor, value.type))
            union_names(parameter, op)
            first = block.first_op
            assert first is not None
            Rewriter.insert_op(parameter, InsertPoint.before(first))
            self._parameters[block, key] = parameter.output
        return self._parameters[block, key]


def _function_block(op: Operation) -> Block:
    """Return the entry block of the function that `op` is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    assert isinstance(parent, FuncOp) and parent.body.first_block is not None
    return parent.body.first_block


def _finish(module: ModuleOp, prepare: _Prepare) -> None:
    """Add `@prepare` with the results that are read, if there are any."""
    read = {op.key.data for op in module.walk() if isinstance(op, ParameterOp)}
    results = {key: value for key, value in prepare.results.items() if key in read}
    if not results:
        return
    prepare.block.add_op(ReturnOp(*results.values()))
    types = [value.type for value in results.values()]
    func = FuncOp(PREPARE, ([], types), Region(prepare.block), visibility="private")
    func.attributes[PREPARED_KEYS] = ArrayAttr([StringAttr(key) for key in results])
    module.body.block.add_op(func)


@dataclass(frozen=True)
class HoistParameterExpressionsPass(ModulePass):
    """Moves ops that depend on parameters alone to `@prepare`, and reads their results by key.

    In: any module. Out: `func.func private @prepare() -> (…)` with attribute `braid.keys`, one
    key per result; elsewhere `braid.parameter {key = "prepared/0"}`. Expressions that would blow
    a small weight up to a large one stay. Running it twice does the same as running it once.
    Raises BraidError where the module has a function `@prepare` of its own.

    ```mlir
    %w = braid.parameter {key = "w"} : tensor<4xf32>
    %v = braid.neg %w …                      // braid.parameter {key = "prepared/0"}
    ```
    """

    name = "hoist-parameter-expressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist out of every function of `op`."""
        prepare = _existing(op)
        hoister = _Hoister(prepare)
        for func in list(op.ops):
            if isinstance(func, FuncOp) and func.body.blocks:
                hoister.run(func)
        erase_dead_ops(op.body)
        _finish(op, prepare)
        erase_dead_ops(op.body)
