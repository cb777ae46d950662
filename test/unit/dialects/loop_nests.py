"""Running the structure of an op one iteration at a time: slow, and hard to get wrong.

It checks that what lowering derives from (`structure`) is what the op means (`evaluate`).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir.affine import AffineMap

from braid.dialects.braid.base import IndirectOp, StructuredOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.numpy_functions import convert
from braid.dialects.braid.reduction import UFUNCS, neutral_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Literal, Load, Position, Scalar
from braid.dialects.braid.structure import Access, OperandSource, Stage, StageSource


def run_structure(op: StructuredOp | IndirectOp, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Return the results of `op` by its structure, for operands of its types; no dim may be
    open."""
    structure = op.structure()
    done: list[Array] = []
    for stage in structure.stages:
        done.append(_run_stage(stage, operands, done))
    return tuple(done[index] for index in structure.results)


def _run_stage(stage: Stage, operands: Sequence[Array], done: Sequence[Array]) -> Array:
    dtype = to_numpy(stage.result_type)
    sources = [_source(access, operands, done) for access in stage.reads]
    neutral = 0 if stage.combine is None else neutral_of(stage.combine, stage.result_type)
    result = np.full(stage.result_shape, neutral, dtype)
    written = np.zeros(stage.result_shape, bool)
    assert len(stage.kinds) == len(stage.extents)
    for point in itertools.product(*map(range, stage.extents)):
        reads = [
            source[_index(access.map, point)]
            for source, access in zip(sources, stage.reads, strict=True)
        ]
        value = _value(stage.body, reads, point, operands)
        target = _index(stage.result, point)
        if stage.combine is None:
            assert not written[target], "each element has one iteration unless it is reduced"
            result[target] = value
        else:
            combined = UFUNCS[stage.combine](result[target], np.asarray(value).astype(dtype))
            result[target] = combined
        written[target] = True
    assert written.all() or 0 in stage.extents, "every element is computed"
    return result


def _source(access: Access, operands: Sequence[Array], done: Sequence[Array]) -> Array:
    match access.source:
        case OperandSource(index):
            array = operands[index]
        case StageSource(index):
            array = done[index]
    if access.padding is None:
        return array
    widths = list(zip(access.padding.low, access.padding.high, strict=True))
    return np.pad(array, widths, constant_values=access.padding.value)


def _index(map: AffineMap, point: tuple[int, ...]) -> tuple[int, ...]:
    index = tuple(map.eval(point, []))
    assert min(index, default=0) >= 0, "an access map never counts from the end"
    return index


def _value(
    body: Scalar, reads: Sequence[Any], point: tuple[int, ...], operands: Sequence[Array]
) -> Any:
    match body:
        case Argument(index):
            return reads[index]
        case Literal(value, type):
            return to_numpy(type).type(value)
        case Position(dim, type):
            return to_numpy(type).type(point[dim])
        case Load(operand, indices, _):
            at = tuple(int(_value(index, reads, point, operands)) for index in indices)
            return operands[operand][at]
        case Apply(operation, arguments, type):
            values = [np.asarray(_value(a, reads, point, operands)) for a in arguments]
            if operation == "bitcast":
                return values[0].view(to_numpy(type))[()]
            with np.errstate(all="ignore"):
                result = np.asarray(ELEMENTWISE[operation].ROW.function(*values))
                return convert(result, to_numpy(type))[()]
