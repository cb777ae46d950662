"""`extend-half-floats`: f16 and bf16 are stored, f32 is computed with."""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    ModuleOp,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.structure.carried_values import Carried, carried_values
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.accumulation import AccumulatingOp
from braid.dialects.braid.attribute_names import MODEL_TYPE
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.indexing import GatherBase
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.names import derive_names, inherit_names
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import CopyingOp
from braid.dialects.braid.scattering import ScatterOp
from braid.targets.machines.resolve import runs_on, target_of
from braid.targets.machines.target import Target

_HALF = (Float16Type, BFloat16Type)
_MOVING = (BroadcastOp, ConcatOp, GatherBase, PadOp, ReshapeOp, SliceOp, TransposeOp)
"""The ops that move elements, which keep the type that elements have already."""
_ADDRESSED = (BroadcastOp, ReshapeOp, TransposeOp)
"""The ops that move all elements."""
_CAST, _BITCAST = ELEMENTWISE["cast"], ELEMENTWISE["bitcast"]
_TYPED = (CopyingOp, OpaqueOp, _BITCAST)
"""Ops that need the type that they have."""


@dataclass(frozen=True)
class ExtendHalfFloatsPass(ModulePass):
    """Computes f16 and bf16 in f32, and rounds values that leave the computation.

    In: any module. Out: ops on f16 and bf16 move them or cast them. Values between ops are not
    rounded, unless they are concatenated with stored ones, such as a cache of keys; nor are states
    that an iteration of a loop computes for the next one. Arguments, results, values that other
    control flow carries or a loop collects, and explicit casts keep their types. So results are at
    least as close to the exact ones as those of ops that round each time. Products say which type
    they had (`braid.model_type`); sums that were in f32 already are sums of f32. With `devices`
    only ops on these are changed.

    ```mlir
    %y = braid.mul %x, %x : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
    // %w = braid.cast %x : (tensor<4xf16>) -> tensor<4xf32>
    // %v = braid.mul %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // %y = braid.cast %v : (tensor<4xf32>) -> tensor<4xf16>
    ```
    """

    name = "extend-half-floats"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite all functions of `op`."""
        if not any(_is_half(value) for inner in op.walk() for value in inner.operands):
            return
        extension = _Extension(target_of(op, self.target), self.devices)
        extension.widen_states(op)
        for region in op.regions:
            for block in region.blocks:
                extension.visit(block)
        extension.hand_on_states()
        extension.round_what_is_read()


@dataclass
class _Extension:
    """The f32 values that replace half-precision values, and the replaced ops.

    `states` of loops are in f32, `rounded` are the ops that round them.
    """

    target: Target
    devices: tuple[str, ...]
    computed: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    extended: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    replaced: list[Operation] = field(default_factory=list[Operation])
    expressions: ParameterExpressions = field(default_factory=ParameterExpressions)
    states: list[Carried] = field(default_factory=list[Carried])
    rounded: list[Operation] = field(default_factory=list[Operation])

    def widen_states(self, module: ModuleOp) -> None:
        """Give states that iterations compute for the next ones f32 for a type.

        Readers of one read a rounding of it, until they are extended themselves.
        """
        loops = [op for op in module.walk() if isinstance(op, scf.ForOp | scf.WhileOp)]
        computed = self._computed_in(module) if loops else set[SSAValue]()
        for loop in loops:
            for state in carried_values(loop):
                if state.makes[0] not in computed:
                    continue
                self.states.append(state)
                for value in state.makes:
                    self._widen(value)

    def _computed_in(self, module: ModuleOp) -> set[SSAValue]:
        """Return the values of half the bits that are to be in f32: the least set that is
        closed.
        """
        computed = set[SSAValue]()
        size = -1
        while size < len(computed):
            size = len(computed)
            for op in module.walk():
                if isinstance(op, scf.ForOp | scf.WhileOp):
                    for state in carried_values(op):
                        following = (user.operands[i] for user, i in state.reads if user is not op)
                        if any(value in computed for value in following):
                            computed.update(state.makes)
                elif self._is_extended(op, computed):
                    computed.update(filter(_is_half, op.results))
        return computed

    def _widen(self, value: SSAValue) -> None:
        """Change the type of what a loop makes to f32."""
        owner, half = value.owner, element_type_of(value)
        wide = Rewriter.replace_value_with_new_type(value, _with(value, f32))
        readers = list(wide.uses)
        rounded = _cast(wide, half, _after(owner), owner)
        for use in readers:
            use.operation.operands[use.index] = rounded
        self.computed[rounded] = wide
        self.rounded.append(rounded.op)

    def hand_on_states(self) -> None:
        """Begin and continue loops with states in f32."""
        for state in self.states:
            for user, index in state.reads:
                user.operands[index] = self._wide(user.operands[index])

    def visit(self, block: Block) -> None:
        """Insert an op on f32 before each that computes in half of the bits."""
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.visit(inner)
            if isinstance(op, _CAST):
                op.operands = [self.computed.get(value, value) for value in op.operands]
            elif isinstance(op, TensorOp) and self._is_extended(op, self.computed):
                self._extend(op)

    def _is_extended(self, op: Operation, computed: Container[SSAValue]) -> bool:
        """Return whether `op` is to be one on f32, where these are `computed` in f32."""
        if not isinstance(op, TensorOp) or isinstance(op, (*_TYPED, _CAST)):
            return False
        if isinstance(op, ConcatOp) and _is_mostly_stored(op, computed):
            computes = False
        elif isinstance(op, _MOVING):
            computes = any(value in computed for value in op.operands) or self._is_addressing(op)
        elif _writes_into_collection(op):
            computes = op.operands[0] in computed
        else:
            computes = any(map(_is_half, op.operands))
        return computes and runs_on(op, self.devices, self.target)

    def _is_addressing(self, op: Operation) -> bool:
        """Return whether only matmuls and convolutions, which read it in place, read the value that
        `op` moves.

        Then its operand, which is as large or smaller, is extended; known operands are moved once.
        """
        return (
            isinstance(op, _ADDRESSED)
            and _is_half(op.operands[0])
            and not self.expressions.is_known(op.operands[0])
            and bool(op.results[0].uses)
            and all(
                isinstance(use.operation, MatmulOp) or self._is_addressing(use.operation)
                for use in op.results[0].uses
            )
        )

    def _extend(self, op: TensorOp) -> None:
        new = _on_f32(op, [self._wide(value) for value in op.operands])
        if new is None:
            return
        Rewriter.insert_op(new, InsertPoint.before(op))
        for old, result in zip(op.results, new.results, strict=True):
            if _is_half(old):
                self.computed[old] = result
            else:
                old.replace_all_uses_with(result)
        if isinstance(op, ConvOp | MatmulOp):
            new.attributes[MODEL_TYPE] = element_type_of(op.operands[0])
        self.replaced.append(op)

    def _wide(self, value: SSAValue) -> SSAValue:
        """Return `value` in f32."""
        if not _is_half(value):
            return value
        if value in self.computed:
            return self.computed[value]
        if value not in self.extended:
            self.extended[value] = _cast(value, f32, _after(value.owner), value.owner)
        return self.extended[value]

    def round_what_is_read(self) -> None:
        """Erase replaced ops; their other readers get the rounded values."""
        for op in reversed(self.replaced):
            for old in op.results:
                if _is_half(old) and old.uses:
                    wide = self.computed[old]
                    rounded = _cast(wide, element_type_of(old), InsertPoint.before(op), op)
                    old.replace_all_uses_with(rounded)
            inherit_names(op, [self.computed.get(old) for old in op.results])
            Rewriter.erase_op(op)
        for op in self.rounded:
            if not op.results[0].uses:
                Rewriter.erase_op(op)


def _is_half(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(element_type_of(value), _HALF)


def _is_mostly_stored(op: ConcatOp, computed: Container[SSAValue]) -> bool:
    """Return whether most of what `op` joins is in memory in 16 bits, as a cache that a key is
    added to.

    To move that in f32, and back, would take longer than the few numbers are worth.
    """
    if any(DYNAMIC in shape_of(value) for value in op.operands):
        return False
    sizes = {value: math.prod(shape_of(value)) for value in op.operands}
    stored = sum(size for value, size in sizes.items() if value not in computed)
    return 2 * stored > sum(sizes.values())


def _writes_into_collection(op: TensorOp) -> bool:
    """Return whether `op` writes into a value that a loop carries: a change of type would copy all
    of it.
    """
    if not isinstance(op, ScatterOp) or op.reduction.data != "none":
        return False
    loop = op.data.owner.parent_op() if isinstance(op.data.owner, Block) else None
    return isinstance(loop, scf.ForOp | scf.WhileOp)


def _after(owner: Operation | Block) -> InsertPoint:
    """Return the first position at which results of `owner` can be read."""
    return InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)


def _cast(
    value: SSAValue, element_type: Attribute, place: InsertPoint, source: Operation | Block
) -> OpResult:
    """Return `value` in another element type."""
    op = _CAST.create(operands=[value], result_types=[_with(value, element_type)])
    Rewriter.insert_op(op, place)
    if isinstance(source, Operation):
        op.location = source.location
        derive_names(op, source, "cast")
    return op.results[0]


def _on_f32(op: TensorOp, operands: Sequence[SSAValue]) -> TensorOp | None:
    """Return `op` on other operands, with results in f32; None where it cannot have them."""
    types = [_with(result, f32) if _is_half(result) else result.type for result in op.results]
    attributes = {name: _attribute_in_f32(value) for name, value in op.attributes.items()}
    if isinstance(op, AccumulatingOp) and op.accumulator == f32:
        del attributes["accumulator"]  # all of f32 has sums in f32
    new = type(op).create(operands=operands, result_types=types, attributes=attributes)
    new.location = op.location
    try:
        new.verify_()
    except VerifyException:
        return None
    return new


def _with(value: SSAValue, element_type: Attribute) -> AnyTensor:
    """Return the type of `value` with other elements."""
    type = cast(AnyTensor, value.type)
    return TensorType(element_type, type.get_shape(), type.encoding)


def _attribute_in_f32(attribute: Attribute) -> Attribute:
    """Return a number of the element type, such as a padding value, in f32."""
    if not isinstance(attribute, FloatAttr):
        return attribute
    number = cast(FloatAttr[AnyFloat], attribute)
    return FloatAttr(number.value.data, f32) if isinstance(number.type, _HALF) else number
