"""The form of braid's ops that upstream tools can check with the dialect's IRDL.

IRDL differs from xDSL in two points, and both have a way around:

- all values of one variadic must have one type. An op whose values have several types, or that
  has several variadics, becomes `braid.mixed_…`. There each list of operands or results is several
  variadics, one for each run of values of one type, with their lengths in `operandSegmentSizes`
  and `resultSegmentSizes`;
- no op is a terminator. `braid.yield` becomes `tosa.yield`, which takes any tensors and may be in
  any op.

Source: MLIR, "'irdl' Dialect".
"""

from collections.abc import Sequence
from itertools import groupby
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp, UnregisteredOp, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, VariadicDef
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.dialects.tosa import YieldOp as TosaYieldOp
from braid.support.errors import BraidError

SEGMENTS = 64
"""The runs of values of one type among the operands, or the results, of an op."""

_DIALECT = "braid."
_MIXED = "braid.mixed_"
_OPERANDS = "operandSegmentSizes"
_SIZES = (_OPERANDS, "resultSegmentSizes")


def has_mixed_form(operation: type[Operation]) -> bool:
    """Return whether ops of this class may have values of several types in one variadic."""
    if not operation.name.startswith(_DIALECT) or issubclass(operation, ElementwiseOp):
        return False
    assert issubclass(operation, IRDLOperation), "the dialect has no other ops"
    definition = operation.get_irdl_definition()
    values = [*definition.operands, *definition.results]
    return not operation.has_trait(IsTerminator) and any(
        isinstance(value, VariadicDef) for _, value in values
    )


def mixed_name(name: str) -> str:
    """Return the name of the mixed form, such as `braid.mixed_concat` for `braid.concat`."""
    return _MIXED + name.removeprefix(_DIALECT)


def plain_name(name: str) -> str:
    """Return the name of the plain form, such as `braid.concat`; any other name as it is."""
    return _DIALECT + name.removeprefix(_MIXED) if name.startswith(_MIXED) else name


def to_upstream_form(module: ModuleOp) -> None:
    """Give all ops of `module` the form that IRDL can describe, in place.

    Raises `BraidError` where the values of an op have more than `SEGMENTS` runs of types.
    """
    for op in list(module.walk()):
        if isinstance(op, YieldOp):
            _replace(op, TosaYieldOp.create(operands=op.operands, attributes=op.attributes))
        elif has_mixed_form(type(op)) and _is_mixed(op):
            _replace(op, _mixed(op))


def from_upstream_form(module: ModuleOp) -> None:
    """Undo `to_upstream_form` in a module whose ops already have their plain names."""
    for op in list(module.walk()):
        if has_mixed_form(type(op)):
            for name in _SIZES:
                op.attributes.pop(name, None)
            _restore_segments(op)
        if isinstance(op, TosaYieldOp) and isinstance(op.parent_op(), GroupOp):
            _replace(op, YieldOp.create(operands=op.operands, attributes=op.attributes))


def is_in_upstream_form(text: str) -> bool:
    """Return whether a module with this text may need `from_upstream_form`."""
    return _MIXED in text or (TosaYieldOp.name in text and _DIALECT in text)


def _is_mixed(op: Operation) -> bool:
    several_types = len(set(op.operand_types)) > 1 or len(set(op.result_types)) > 1
    return several_types or _OPERANDS in op.properties


def _restore_segments(op: Operation) -> None:
    """Restore the number of operands in each list, for an op with several lists."""
    assert isinstance(op, IRDLOperation)
    lists = len(op.get_irdl_definition().operands)
    sizes = op.properties.get(_OPERANDS)  # where xDSL's parser puts the object of that name
    if not isinstance(sizes, DenseArrayBase):
        return
    runs = cast(DenseArrayBase[IntegerType], sizes).get_values()
    if len(runs) == lists * SEGMENTS:
        counts = [sum(runs[i * SEGMENTS : (i + 1) * SEGMENTS]) for i in range(lists)]
        op.properties[_OPERANDS] = DenseArrayBase.from_list(i32, counts)


def _mixed(op: Operation) -> Operation:
    assert isinstance(op, IRDLOperation)
    definition = op.get_irdl_definition()
    sizes: dict[str, Attribute] = {}
    for name, defined in zip(_SIZES, (definition.operands, definition.results), strict=True):
        lists = [_listed(getattr(op, own)) for own, _ in defined]
        runs = [size for values in lists for size in _segment_sizes(op, values)]
        sizes[name] = DenseArrayBase.from_list(i32, runs)
    return UnregisteredOp.with_name(mixed_name(op.name)).create(
        operands=op.operands,
        result_types=op.result_types,
        attributes={**op.attributes, **sizes},
        regions=[op.detach_region(region) for region in list(op.regions)],
    )


def _listed(values: SSAValue | Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [values] if isinstance(values, SSAValue) else values


def _segment_sizes(op: Operation, values: Sequence[SSAValue]) -> list[int]:
    runs = [len(list(run)) for _, run in groupby(value.type for value in values)]
    if len(runs) > SEGMENTS:
        raise BraidError(
            f"the values of {op.name} change their type {len(runs) - 1} times; "
            f"IRDL describes up to {SEGMENTS} runs of one type",
            hint="use the plain generic form and allow unregistered dialects",
        )
    return [*runs, *[0] * (SEGMENTS - len(runs))]


def _replace(op: Operation, new: Operation) -> None:
    new.location = op.location
    for old_result, result in zip(op.results, new.results, strict=True):
        result.name_hint = old_result.name_hint
    Rewriter.replace_op(op, new)
