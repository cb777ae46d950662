"""Stages of a structured op as `linalg.generic` on tensors."""

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from braid.dialects.braid.attributes import LayoutAttr, layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import bytes_of, i1, is_float, is_unsigned
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.scalar import Argument
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Padding,
    Source,
    Stage,
    Structure,
    neutral_element,
)
from braid.lowering.common.element_types import (
    compute_type,
    narrow,
    signless,
    tensor_type_of,
    widen,
)
from braid.lowering.common.guarded_padding import guarded_padding, is_guardable
from braid.lowering.common.linalg_builders import (
    copied,
    elementwise,
    empty,
    extents_operand,
    filled,
    generic,
    leading,
    padded,
    row_major,
)
from braid.lowering.common.physical_iteration import is_paddable
from braid.lowering.common.scalar_body import BodyEmitter
from braid.lowering.common.scalar_ops import emit_operation

_REASSOCIABLE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT])
"""Sums and products of floats may be computed in any order; nothing else is relaxed."""


class StageEmitter:
    """Emits the stages of one op.

    `operands` are upstream's tensors for the op's operands, whose types in braid are
    `operand_types`; `result_types` are the op's result types in braid.
    """

    def __init__(
        self,
        builder: Builder,
        operands: Sequence[SSAValue],
        operand_types: Sequence[AnyTensor],
        result_types: Sequence[AnyTensor],
    ) -> None:
        self._builder = builder
        self._operands = operands
        self._operand_types = operand_types
        self._result_types = result_types

    def emit(self, structure: Structure) -> list[SSAValue]:
        """Return the results of the op, in the layouts of their types."""
        encodings = {
            stage: self._result_types[result].encoding
            for result, stage in enumerate(structure.results)
        }
        self._stages = structure.stages
        self._values: list[SSAValue] = []
        for index, stage in enumerate(structure.stages):
            self._values.append(self._emit_stage(stage, encodings.get(index, NoneAttr())))
        return [self._values[stage] for stage in structure.results]

    def _emit_stage(self, stage: Stage, encoding: Attribute) -> SSAValue:
        element_type = signless(stage.result_type)
        result_type = TensorType(element_type, stage.result_shape, encoding)
        if (padded_copy := self._padded_copy(stage, result_type)) is not None:
            return padded_copy
        inputs = [self._read(access, stage) for access in stage.reads]
        if is_copy(stage) and inputs[0].type == result_type and _keeps_tails_zero(stage, encoding):
            return inputs[0]
        maps = [access.map for access in stage.reads]
        if missing := extents_operand(self._builder, [*maps, stage.result], stage.extents):
            inputs.append(missing[0])
            maps.append(missing[1])
        if stage.combine is None:
            output = empty(self._builder, result_type)
        else:
            output = self._neutral(stage, stage.combine, result_type)
        value = generic(
            self._builder,
            inputs,
            output,
            [*maps, stage.result],
            stage.kinds,
            lambda builder, arguments: self._emit_body(builder, stage, encoding, arguments),
        )
        if value.type == result_type:
            return value
        return elementwise(
            self._builder, value, result_type, lambda b, x: narrow(b, x[0], element_type)
        )

    def _padded_copy(self, stage: Stage, result_type: AnyTensor) -> SSAValue | None:
        """Return the stage as a guarded padding, if it is a padding that can be one."""
        if not is_copy(stage) or (padding := stage.reads[0].padding) is None:
            return None
        source = self._source(stage.reads[0].source)
        if not is_guardable(source, result_type):
            return None
        return guarded_padding(self._builder, source, padding, result_type)

    def _neutral(self, stage: Stage, combine: str, result_type: AnyTensor) -> SSAValue:
        """Return the initial value of a reduction; 16-bit floats are combined in 32 bits."""
        number = neutral_element(
            combine,
            is_float(stage.result_type),
            1 if stage.result_type == i1 else 8 * bytes_of(stage.result_type),
            is_unsigned(stage.result_type),
        )
        held = compute_type(stage.result_type)
        held_type = TensorType(held, result_type.get_shape(), result_type.encoding)
        return filled(self._builder, number, held_type)

    def _emit_body(
        self,
        builder: Builder,
        stage: Stage,
        encoding: Attribute,
        arguments: Sequence[SSAValue],
    ) -> SSAValue:
        values = [widen(builder, argument) for argument in arguments[: len(stage.reads)]]
        types = [self._element_type(access.source) for access in stage.reads]
        emitter = BodyEmitter(
            builder, values, types, self._operands, self._operand_types, _reached(stage, encoding)
        )
        value, _ = emitter.emit(stage.body)
        if stage.combine is None:
            return narrow(builder, value, stage.result_type)
        return _combined(builder, stage, stage.combine, arguments[-1], value)

    def _read(self, access: Access, stage: Stage) -> SSAValue:
        value = self._source(access.source)
        padding: Padding | None = access.padding
        if padding is not None:
            if not is_paddable(layout_of(value.type), padding.low, padding.high):
                value = copied(self._builder, value, row_major(value))
            value = padded(self._builder, value, padding.low, padding.high, padding.value)
        return leading(self._builder, value, _sizes_read(access, stage, value))

    def _source(self, source: Source) -> SSAValue:
        if isinstance(source, OperandSource):
            return self._operands[source.index]
        return self._values[source.index]

    def _element_type(self, source: Source) -> Attribute:
        if isinstance(source, OperandSource):
            return self._operand_types[source.index].element_type
        return self._stages[source.index].result_type


def accumulated(
    builder: Builder,
    stage: Stage,
    types: Sequence[Attribute],
    elements: Sequence[SSAValue],
    total: SSAValue,
) -> SSAValue:
    """Return what a stage that reduces has after one more element of each operand, as stored.

    `types` are those of the elements in the dialect; the stage reads nothing else.
    """
    assert stage.combine is not None, "a stage that reduces"
    values = [widen(builder, element) for element in elements]
    value, _ = BodyEmitter(builder, values, types, (), (), ()).emit(stage.body)
    return _combined(builder, stage, stage.combine, total, value)


def _combined(
    builder: Builder, stage: Stage, combine: str, total: SSAValue, value: SSAValue
) -> SSAValue:
    result = emit_operation(builder, combine, [total, value], stage.result_type)
    if combine in ("add", "mul") and is_float(stage.result_type):
        result.owner.properties["fastmath"] = _REASSOCIABLE  # type: ignore[union-attr]
    return result


def is_copy(stage: Stage) -> bool:
    """Return whether the stage only reads its result from one place that has its shape."""
    return (
        stage.body == Argument(0)
        and len(stage.reads) == 1
        and stage.combine is None
        and stage.reads[0].map == AffineMap.identity(len(stage.kinds)) == stage.result
    )


def _sizes_read(access: Access, stage: Stage, value: SSAValue) -> list[int]:
    """Return the extents of the source that linalg has to see: those of the loops over
    single dims.
    """
    return [
        stage.extents[expr.position] if isinstance(expr, AffineDimExpr) else extent
        for expr, extent in zip(access.map.results, tensor_type_of(value).get_shape(), strict=True)
    ]


def _reached(stage: Stage, encoding: Attribute) -> Sequence[int]:
    """Return how many indices of each dim are iterated over, open where blocks reach after
    them.
    """
    if isinstance(encoding, LayoutAttr) and not encoding.layout.is_permutation:
        return [DYNAMIC] * len(stage.extents)
    return stage.extents


def _keeps_tails_zero(stage: Stage, encoding: Attribute) -> bool:
    """Return whether padding the source, whose blocks have zero tails, leaves those of the result
    zero.
    """
    padding = stage.reads[0].padding
    if padding is None or padding.value == 0 or not isinstance(encoding, LayoutAttr):
        return True
    layout = encoding.layout
    return all(n % layout.block(dim) == 0 for dim, n in enumerate(stage.result_shape))
