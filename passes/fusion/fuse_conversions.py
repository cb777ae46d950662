"""`fuse-conversions`: what widens an operand of a product goes into the product's group."""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import is_transposed_view
from braid.analysis.storage.view_groups import only_op
from braid.analysis.structure.conversions import narrow_source
from braid.analysis.structure.parameter_expressions import first_free_key, prepared_key
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.passes.fusion.operand_groups import is_operand, join_if_faster, seconds
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of

_CAST = ELEMENTWISE["cast"]


@dataclass(frozen=True)
class FuseConversionsPass(ModulePass):
    """Lets products read f16, bf16 and i8 in place, and widen them as they are loaded.

    In: groups after `apply-fusion`. Out: a conversion to f32 of the right operand of a product,
    alone in its group and possibly followed by a transpose or reshape, is in the group of that
    product if kernels of the op's device then cost less: half of the bytes are read, and nothing is
    stored. The same holds for conversions of weights that `hoist-parameter-expressions` has moved:
    the weights then stay in 8 or 16 bits, even if that takes up to a tenth longer.

    ```mlir
    %1 = braid.fused(%k) { … braid.cast … }
    %2 = braid.fused(%1) { … braid.transpose … }
    %3 = braid.fused(%q, %2) { … braid.matmul … }
    // becomes
    %2 = braid.fused(%k) { … braid.transpose … }
    %3 = braid.fused(%q, %2) { … braid.cast … braid.matmul … }
    ```
    """

    name = "fuse-conversions"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse in every function that runs with the model, as far as it pays."""
        costs, prepared = CostSource(target_of(op, self.target)), _Prepared.of(op)
        for func in runtime_functions(op):
            found = fused = 0
            for product in [group for group in func.walk() if isinstance(group, FusedOp)]:
                operand = _operand(product)
                known = None if operand is None else _conversion(operand, prepared)
                if operand is not None and known is not None:
                    found += 1
                    fused += _fuse(product, operand, known, prepared, costs)
            if found:
                message = f"{fused} of {found} conversions are part of products"
                emit_remark(func, self.name, message, conversions=found, fused=fused)


_LONGER = 1.1
"""The factor by which a product by known weights may take longer if it keeps them in fewer bits:
they would take two or four times as many bytes of the artifact and of memory in f32."""


@dataclass
class _Prepared:
    """The results of `@prepare`, by key: present ones, and those that will be added."""

    function: FuncOp | None
    results: dict[str, SSAValue]

    @staticmethod
    def of(module: ModuleOp) -> "_Prepared":
        """Return the folds of the module's `@prepare`, if it has one."""
        for function in module.ops:
            if isinstance(function, FuncOp) and PREPARED_KEYS in function.attributes:
                keys = cast(ArrayAttr[StringAttr], function.attributes[PREPARED_KEYS])
                last = function.body.block.last_op
                assert isinstance(last, ReturnOp)
                results = zip((key.data for key in keys), last.arguments, strict=True)
                return _Prepared(function, dict(results))
        return _Prepared(None, {})

    def narrow(self, value: SSAValue) -> SSAValue | None:
        """Return the value from which `value`, a prepared parameter, is widened, if it is."""
        owner = value.owner
        made = self.results.get(owner.key.data) if isinstance(owner, ParameterOp) else None
        return None if made is None else _widened_from(made)

    def parameter(self, value: SSAValue) -> ParameterOp:
        """Read a value of `@prepare`, which becomes a result unless it is a parameter itself."""
        type = cast(AnyTensor, value.type)
        if isinstance(value.owner, ParameterOp) and value.owner.key.data not in self.results:
            return ParameterOp.of(value.owner.key.data, type)
        keys = [key for key, made in self.results.items() if made is value]
        return ParameterOp.of(keys[0] if keys else self._add(value), type)

    def _add(self, value: SSAValue) -> str:
        """Return the key of a new result."""
        assert self.function is not None
        last = self.function.body.block.last_op
        assert isinstance(last, ReturnOp)
        key = prepared_key(first_free_key(self.results))
        self.results[key] = value
        last.operands = list(self.results.values())
        types = [made.type for made in self.results.values()]
        self.function.function_type = type(self.function.function_type).from_lists([], types)
        self.function.attributes[PREPARED_KEYS] = ArrayAttr(list(map(StringAttr, self.results)))
        return key


@dataclass(frozen=True)
class _Conversion:
    """The source of an operand: `narrow` in f32, moved by all of `moves`, in order.

    `group` is that of the conversion; None for values known at compile time.
    """

    narrow: SSAValue
    moves: tuple[Operation, ...] = ()
    group: FusedOp | None = None

    def allowed(self, product: FusedOp, costs: CostSource) -> float:
        """Return the seconds that a product may take with the conversion in it."""
        apart = seconds(costs, product)
        if self.group is None:
            return _LONGER * apart
        return apart + seconds(costs, self.group) / len(list(self.group.outputs[0].uses))

    def leaves(self, layout: Layout) -> bool:
        """Return whether the operand, moved but not converted, can stay where it lies."""
        if self.group is None:
            return True
        last = _transpose_of(self.moves[-1]) if self.moves else None
        if last is None:
            return layout.is_row_major
        return is_transposed_view(last, Layout.row_major(layout.rank), layout)


def _operand(group: FusedOp) -> SSAValue | None:
    """Return the right operand of the product in a group, where nothing else in it reads that."""
    products = [op for op in group.body.block.ops if isinstance(op, MatmulOp)]
    argument = products[0].rhs if len(products) == 1 else None
    if not isinstance(argument, BlockArgument) or argument.owner is not group.body.block:
        return None
    value = group.inputs[argument.index]
    is_only = is_operand(group, argument.index) and group.inputs.count(value) == 1
    return value if is_only and DYNAMIC not in shape_of(value) else None


def _conversion(value: SSAValue, prepared: _Prepared) -> _Conversion | None:
    """Return how `value` is made by a conversion, if it is, with no transpose but the last move."""
    if (narrow := prepared.narrow(value)) is not None:
        return _Conversion(narrow)
    moves: list[Operation] = []
    while isinstance(owner := value.owner, Operation) and _moves(owner):
        moves.insert(0, owner)
        value = owner.operands[0]
    narrow = _widened_from(value)
    if narrow is None or not isinstance(owner, FusedOp) or any(map(_transpose_of, moves[:-1])):
        return None
    return _Conversion(narrow, tuple(moves), owner)


def _widened_from(value: SSAValue) -> SSAValue | None:
    """Return the source of `value`, which is its conversion to f32, by an op or a separate
    group."""
    op = value.owner
    inner = only_op(op) if isinstance(op, FusedOp) else op
    if not isinstance(op, Operation) or not isinstance(inner, Operation):
        return None
    return op.operands[0] if narrow_source(inner) is not None else None


def _moves(op: Operation) -> bool:
    return isinstance(op, ReshapeOp) or _transpose_of(op) is not None


def _transpose_of(op: Operation) -> TransposeOp | None:
    """Return the transpose that is all of a group."""
    inner = only_op(op) if isinstance(op, FusedOp) else None
    return inner if isinstance(inner, TransposeOp) else None


def _fuse(
    product: FusedOp, operand: SSAValue, known: _Conversion, prepared: _Prepared, costs: CostSource
) -> bool:
    """Put the conversion of the operand into the product's group if that pays."""
    replaced = [*reversed(known.moves), *([] if known.group is None else [known.group])]
    if not run_together(*replaced, product):
        return False
    allowed = known.allowed(product, costs)
    made = _moved_narrow(product, operand, known, prepared)
    narrow = made[-1].results[0] if made else known.narrow
    conversion = _group(_CAST.create(operands=[narrow], result_types=[operand.type]))
    Rewriter.insert_op(conversion, InsertPoint.before(product))
    number = product.operands.index(operand)
    product.operands[number] = conversion.outputs[0]

    def leaves(choice: LayoutChoice, group: FusedOp) -> bool:
        return known.leaves(choice.operands[group.inputs.index(narrow)])

    fused = join_if_faster(conversion, product, costs, allowed, leaves)
    if fused:
        Rewriter.erase_op(conversion)
    else:
        product.operands[number] = operand
        replaced = [conversion, *reversed(made)]
    for op in replaced:
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
    return fused


def _moved_narrow(
    product: FusedOp, operand: SSAValue, known: _Conversion, prepared: _Prepared
) -> list[Operation]:
    """Return new ops, the last of which makes the operand of the product, but not converted."""
    if known.group is None:
        parameter = prepared.parameter(known.narrow)
        union_names(parameter, cast(Operation, operand.owner))
        Rewriter.insert_op(parameter, InsertPoint.before(cast(Operation, operand.owner)))
        return [parameter]
    value, made = known.narrow, list[Operation]()
    for move in known.moves:
        transpose = _transpose_of(move)
        if transpose is None:
            new = ReshapeOp.get(value, shape_of(move.results[0]))
        else:
            new = _group(TransposeOp.get(value, transpose.permutation.get_values()))
        union_names(new, move)
        new.location = move.location
        Rewriter.insert_op(new, InsertPoint.before(product))
        made.append(new)
        value = new.results[0]
    return made


def _group(op: Operation) -> FusedOp:
    """Return `op` on one operand as a group of its own."""
    (operand,) = op.operands
    body = Block(arg_types=[operand.type])
    op.operands[0] = body.args[0]
    body.add_ops([op, YieldOp(op.results[0])])
    return FusedOp([operand], [op.results[0].type], body)
