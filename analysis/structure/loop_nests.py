"""Ops of `linalg` on tensors as loop nests: extents, access maps, and a body of scalar ops.

Upstream's `linalg-generalize-named-ops` turns named ops into `linalg.generic`. It is called once
for all ops of a module, since each call prints and parses the ops as text, in another process.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.arith import Arith, ConstantOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    Builtin,
    FunctionType,
    IntegerType,
    ModuleOp,
    TensorType,
    UnregisteredOp,
)
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import GenericOp, YieldOp
from xdsl.dialects.math import Math
from xdsl.dialects.tensor import Tensor
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.sizes import sizes_of_type
from braid.dialects.linalg import Linalg
from braid.dialects.printing import module_text
from braid.support.upstream_process import EndedError, RejectedError, Request, upstream_text


@dataclass(frozen=True)
class TensorNest:
    """A loop nest over tensors, as `linalg.generic` describes it.

    `of` is the op of the model. `op` is that op itself, or the generic form of a named op.
    """

    op: GenericOp
    of: Operation
    is_copy: bool = True
    """If set, `op` is a generic form, whose operands are arguments of a function of its own."""

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """Return the operands of the model that the nest only reads."""
        return tuple(map(self.model_value, self.op.inputs))

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """Return the operands of the model that hold the initial values of the results."""
        return tuple(map(self.model_value, self.op.outputs))

    def model_value(self, value: SSAValue) -> SSAValue:
        """Return the value of the model that stands for `value`, an operand of the nest."""
        if not self.is_copy or not isinstance(value, BlockArgument):
            return value
        is_own = isinstance(value.owner.parent_op(), FuncOp)
        return _values_read(self.of)[value.index] if is_own else value

    def for_result(self, number: int) -> "TensorNest | None":
        """Return a nest that computes one result alone, with a copy of the ops that it needs.

        Return None where the result also depends on the initial values of other results.
        """
        first = len(self.op.inputs)
        own = self.body.args[first + number]
        block = Block(arg_types=[a.type for a in (*self.body.args[:first], own)])
        kept = (*self.body.args[:first], own)
        values: dict[SSAValue, SSAValue] = dict(zip(kept, block.args, strict=True))
        last = self.body.last_op
        if last is None:
            return None
        wanted = {last.operands[number]}
        for op in reversed(list(self.body.ops)):
            if not wanted.isdisjoint(op.results):
                wanted.update(value for inner in op.walk() for value in inner.operands)
        if not wanted.isdisjoint(set(self.body.args) - set(kept)):
            return None
        for op in self.body.ops:
            if op is not last and not wanted.isdisjoint(op.results):
                block.add_op(op.clone(values))
        yielded = last.operands[number]
        block.add_op(YieldOp(values.get(yielded, yielded)))
        maps = list(self.op.indexing_maps)
        output = self.op.outputs[number]
        made = GenericOp(
            list(self.op.inputs),
            [output],
            Region(block),
            [*maps[:first], maps[first + number]],
            list(self.op.iterator_types),
            [output.type],
        )
        return TensorNest(made, self.of, self.is_copy)

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """Return the access map of each operand, inputs first."""
        return tuple(attribute.data for attribute in self.op.indexing_maps)

    @property
    def is_parallel(self) -> tuple[bool, ...]:
        """Return for each loop whether its iterations are independent."""
        return tuple(kind.data == IteratorType.PARALLEL for kind in self.op.iterator_types)

    @property
    def has_iterations(self) -> bool:
        """Return whether every loop has iterations; else the results are the initial values."""
        return not _loops_without_iterations(self.maps, (*self.inputs, *self.outputs))

    @property
    def body(self) -> Block:
        """Return the block that is computed at each point of the iteration space."""
        return self.op.body.block


def op_name(op: Operation) -> str:
    """Return the name of an op, also of one that is not registered in xDSL."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def writes_every_element(op: Operation, number: int) -> bool:
    """Return whether a `linalg.generic` on tensors of static shapes writes all of a result.

    This holds if each index of the result is a different loop, or 0 in a dim of one element. No
    element is written where another loop has no iterations. The op need not be registered.
    """
    attribute = op.properties.get("indexing_maps", op.attributes.get("indexing_maps"))
    maps = [each.data for each in cast(ArrayAttr[AffineMapAttr], attribute)]
    own = maps[number - len(op.results)]
    shape = _shape(op.results[number])
    places = list(zip(own.results, shape, strict=True))
    dims = [expr.position for expr in own.results if isinstance(expr, AffineDimExpr)]
    others = [place for place in places if not isinstance(place[0], AffineDimExpr)]
    return (
        len(set(dims)) == len(dims)
        and all(place == (AffineConstantExpr(0), 1) for place in others)
        and _loops_without_iterations(maps, op.operands).issubset(dims)
    )


def _loops_without_iterations(maps: Iterable[AffineMap], operands: Iterable[SSAValue]) -> set[int]:
    return {
        expr.position
        for map, operand in zip(maps, operands, strict=True)
        for expr, extent in zip(map.results, _shape(operand), strict=True)
        if isinstance(expr, AffineDimExpr) and extent == 0
    }


def _shape(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tensor, () for a scalar."""
    is_tensor = isinstance(value.type, TensorType)
    return cast(AnyTensor, value.type).get_shape() if is_tensor else ()


def tensor_nests(ops: Sequence[Operation]) -> dict[Operation, TensorNest]:
    """Return a loop nest for each of `ops` that is an op of `linalg` with one generic form."""
    nests = {op: TensorNest(op, op, is_copy=False) for op in ops if isinstance(op, GenericOp)}
    named = [op for op in ops if op not in nests and op_name(op).startswith("linalg.")]
    return nests | _generalized(named)


def _generalized(ops: Sequence[Operation]) -> dict[Operation, TensorNest]:
    if not ops:
        return {}
    read = [_values_read(op) for op in ops]
    functions = [
        _function_of(op, values, f"op{i}")
        for i, (op, values) in enumerate(zip(ops, read, strict=True))
    ]
    text = module_text(ModuleOp(functions), generic=True)
    try:
        text = upstream_text(Request(text, _PIPELINE, unregistered=False, locations=False))
    except (RejectedError, EndedError):
        # One op that upstream rejects must not keep the others from being read.
        if len(ops) == 1:
            return {}
        half = len(ops) // 2
        return _generalized(ops[:half]) | _generalized(ops[half:])
    context = Context(allow_unregistered=True)
    for dialect in (Arith, Builtin, Func, Linalg, Math, Tensor):
        context.load_dialect(dialect)
    try:
        module = Parser(context, text).parse_module()
    except (ParseError, ValueError):
        return {}
    found: dict[Operation, TensorNest] = {}
    for op, function in zip(ops, module.ops, strict=True):
        assert isinstance(function, FuncOp)
        made = [inner for inner in function.body.ops if not isinstance(inner, ReturnOp)]
        nests = [inner for inner in made if isinstance(inner, GenericOp)]
        if len(nests) == 1 and all(isinstance(i, ConstantOp | GenericOp) for i in made):
            _take_constants(nests[0], made)
            found[op] = TensorNest(nests[0], op)
    return found


def _take_constants(nest: GenericOp, made: Sequence[Operation]) -> None:
    """Move constants that upstream hoisted out of the body of `nest` back into it."""
    block = nest.body.block
    for constant in made:
        if isinstance(constant, ConstantOp) and block.first_op is not None:
            constant.detach()
            block.insert_op_before(constant, block.first_op)


_PIPELINE = "builtin.module(func.func(linalg-generalize-named-ops))"


def _values_read(op: Operation) -> list[SSAValue]:
    """Return the operands of `op`, then the outer values that its regions read, in order."""
    inside = {value for inner in op.walk() for value in inner.results}
    inside |= {
        argument for region in op.regions for block in region.blocks for argument in block.args
    }
    read = (value for inner in op.walk() for value in inner.operands)
    return [value for value in read if value not in inside]


def _function_of(op: Operation, values: Sequence[SSAValue], name: str) -> FuncOp:
    """Return a function that takes `values`, all that `op` reads, and returns its results."""
    types = [value.type for value in values]
    block = Block(arg_types=types)
    copy = op.clone(dict(zip(values, block.args, strict=True)))
    for attribute in [key for key in copy.attributes if key.startswith("braid.")]:
        del copy.attributes[attribute]
    block.add_ops([copy, ReturnOp(*copy.results)])
    for value in [*block.args, *_values_made(copy)]:
        Rewriter.replace_value_with_new_type(value, _upstream_type(value.type))
    for result, start in zip(reversed(copy.results), reversed(copy.operands), strict=False):
        if isinstance(result.type, TensorType):  # the initial value may say more of its shape
            Rewriter.replace_value_with_new_type(result, start.type)
    signature = FunctionType.from_lists(
        [argument.type for argument in block.args], [result.type for result in copy.results]
    )
    return FuncOp(name, signature, Region(block))


def _values_made(op: Operation) -> Iterator[SSAValue]:
    """Yield the results of `op` and of the ops nested in it, and all block arguments."""
    for inner in op.walk():
        yield from list(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                yield from list(block.args)


def _upstream_type(type: Attribute) -> Attribute:
    """Return a type that upstream reads: with signless integers, and without named sizes."""
    plain = without_sign(type)
    if not isinstance(plain, TensorType):
        return plain
    tensor = cast(AnyTensor, plain)
    is_sized = sizes_of_type(tensor) is not None
    return TensorType(tensor.element_type, tensor.get_shape()) if is_sized else tensor


def without_sign(type: Attribute) -> Attribute:
    """Return `type` with signless integers, the only ones that upstream computes with.

    Signedness changes neither the access maps nor the ops of a body; braid takes it from the types
    of the operands in the model.
    """
    if isinstance(type, TensorType):
        tensor = cast(TensorType[Attribute], type)
        return TensorType(without_sign(tensor.element_type), tensor.get_shape(), tensor.encoding)
    is_integer = isinstance(type, IntegerType)
    return IntegerType(cast(IntegerType, type).width.data) if is_integer else type
