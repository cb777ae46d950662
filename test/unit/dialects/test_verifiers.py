"""Every op that verifies can be computed, within its operands and with its result types.

Every sample of `test_structure`, and of the ops that have neither a structure nor parts, is changed
in one place: an extent, a rank, an element type, a number, a word, an operand or a result. An
accepted op is evaluated, and its loop nests must access its tensors in bounds.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    Float8E4M3FNType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    UnrankedTensorType,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from braid.analysis.structure.verification import verify_module
from braid.dialects.braid.base import DecomposableOp, IndirectOp, StructuredOp, TensorOp, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.decomposition import decompose_all
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import ConcatOp, ReshapeOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.structure import OperandSource, structure_fault
from test.op_samples import DECOMPOSED, STRUCTURED, Build, floats, integers
from test.unit.dialects.test_structure import built

Types = list[Any]
Attributes = dict[str, Attribute]
Mutant = tuple[str, Types, Types | None, Attributes]
"""The change, and the op: types of operands and results (None: inferred), attributes."""

OTHERS: list[tuple[str, Build, list[Any]]] = [
    ("concat", lambda *x: ConcatOp.get(x, 1), [floats(2, 3), floats(2, 1)]),
    ("reshape", lambda x: ReshapeOp.get(x, [3, 2]), [floats(2, 3)]),
    ("top k", lambda x: TopKOp.get(x, 2, 1), [floats(2, 5)]),
    (
        "scatter elements",
        lambda x, i, u: ScatterElementsOp.get(x, i, u, 1, "add"),
        [floats(3, 4), integers(3, 2), floats(3, 2)],
    ),
    ("scatter nd", ScatterNdOp.get, [floats(3, 4), integers(2, 1), floats(2, 4)]),
    ("scatter nd whole", ScatterNdOp.get, [floats(3, 4), integers(2, 2), floats(2)]),
]
SAMPLES = [*STRUCTURED, *DECOMPOSED, *OTHERS]
ELEMENT_TYPES = (
    *(f16, f32, f64, i1, i32, i64, IndexType(), Float8E4M3FNType()),
    *(IntegerType(width) for width in (4, 7, 8)),
    IntegerType(8, Signedness.UNSIGNED),
)
WORDS = ("", "add", "max", "maximum", "and", "none", "linear", "nearest", "align_corners")
FLOATS = (0.0, -1.0, math.nan, math.inf, 1e30, 1e-30)
EVERY = 47
"""Every n-th mutant is tried, all of them in slow tests."""


def types_like(type: Any) -> Iterator[Attribute]:
    """Types that differ from `type` in one extent, the rank, the elements, or in kind."""
    shape, element = list(type.get_shape()), type.element_type
    for dim, extent in enumerate(shape):
        for other in (extent + 1, extent - 1, 0, 1, -1, -2, 2**62):
            yield TensorType(element, [*shape[:dim], other, *shape[dim + 1 :]])
        yield TensorType(element, [*shape[:dim], *shape[dim + 1 :]])
    yield from (TensorType(element, other) for other in ([*shape, 1], [1, *shape], [*shape, 2]))
    yield from (TensorType(other, shape) for other in ELEMENT_TYPES)
    yield from (f32, UnrankedTensorType(element), MemRefType(element, shape))


def attributes_like(attribute: Any) -> Iterator[Attribute]:
    """Attributes that differ from `attribute` in one number, in length, type or kind."""
    yield from (StringAttr("x"), IntegerAttr(1, i64))
    match attribute:
        case DenseArrayBase():
            numbers, kind = list(attribute.get_values()), cast(Any, attribute).elt_type
            of_floats = isinstance(kind, AnyFloat)
            for place, number in enumerate(numbers):
                around = (number + 1, number - 1, 0, -1, 2**40, -(2**40), 2**63 - 1)
                for other in FLOATS if of_floats else around:
                    changed = [*numbers[:place], other, *numbers[place + 1 :]]
                    if of_floats or other < 2**63:
                        yield DenseArrayBase.from_list(kind, changed)
            for changed in ([*numbers, 1], [], numbers[:-1], numbers[::-1], numbers[:1] * 2):
                yield DenseArrayBase.from_list(kind, changed)
            yield DenseArrayBase.from_list(f32 if of_floats else i32, numbers)
        case IntegerAttr():
            number, kind = attribute.value.data, cast(Any, attribute).type
            if kind == i64:
                for other in (number + 1, number - 1, 0, -1, 2, 100, 2**40, 2**63 - 1):
                    yield IntegerAttr(other, kind)
            yield from (IntegerAttr(number, other) for other in (i32, IndexType()))
        case FloatAttr():
            yield from (FloatAttr(other, cast(Any, attribute).type) for other in FLOATS)
            yield FloatAttr(1.0, f16)
        case StringAttr():
            yield from map(StringAttr, WORDS)
        case _:
            pass


def mutants(op: TensorOp) -> Iterator[Mutant]:
    """Yield the op with one change; the types of results stay the same, or are inferred."""
    operands: Types = [value.type for value in op.operands]
    results: Types = [value.type for value in op.results]
    attributes = dict(op.attributes)
    for place, type in enumerate(operands):
        for other in types_like(type):
            changed = [*operands[:place], other, *operands[place + 1 :]]
            yield f"operand {place} is {other}", changed, results, attributes
            yield f"operand {place} is {other}, inferred", changed, None, attributes
    for place, type in enumerate(results):
        for other in types_like(type):
            changed = [*results[:place], other, *results[place + 1 :]]
            yield f"result {place} is {other}", operands, changed, attributes
    for element in ELEMENT_TYPES:
        changed = [TensorType(element, type.get_shape()) for type in operands]
        yield f"all operands are of {element}", changed, None, attributes
    for name, attribute in attributes.items():
        left = {key: value for key, value in attributes.items() if key != name}
        yield f"{name} is missing", operands, results, left
        for other in attributes_like(attribute):
            yield f"{name} is {other}", operands, results, {**attributes, name: other}
            yield f"{name} is {other}, inferred", operands, None, {**attributes, name: other}
    yield "an operand more", [*operands, *operands[:1]], results, attributes
    yield "an operand less", operands[:-1], results, attributes
    yield "a result more", operands, [*results, results[0]], attributes
    yield "a result less", operands, results[:-1], attributes


def accepted(op: TensorOp, mutant: Mutant) -> TensorOp | None:
    """Return the op with the change, in a separate module, unless that is invalid."""
    _, operands, results, attributes = mutant
    block = Block(arg_types=operands)
    given = [value.type for value in op.results] if results is None else results
    new = type(op).create(operands=block.args, result_types=given, attributes=attributes)
    if results is None:
        try:
            results = list(new.infer_result_types())
        except Exception:  # of kinds that the definition of the op refuses before
            return None
        new.drop_all_references()
        new = type(op).create(operands=block.args, result_types=results, attributes=attributes)
    block.add_ops([new, ReturnOp(*new.results)])
    ModuleOp([FuncOp("main", (operands, results), Region(block))])
    try:
        new.verify()
    except VerifyException:
        return None
    return new


def require_inside(op: StructuredOp | IndirectOp) -> None:
    """Raise AssertionError for a read or write out of bounds of a tensor.

    Maps are monotonic, so their extremes are at the corners of the iteration space.
    """
    structure = op.structure()
    assert structure_fault(structure, op) is None
    for stage in structure.stages:
        for corner in itertools.product(*({0, extent - 1} for extent in stage.extents)):
            if 0 in stage.extents:
                continue
            for read in stage.reads:
                match read.source:
                    case OperandSource(index):
                        shape: Sequence[int] = shape_of(op.operands[index])
                    case source:
                        shape = structure.stages[source.index].result_shape
                pad = read.padding
                none = (0,) * len(shape)
                low, high = (pad.low, pad.high) if pad else (none, none)
                extents = zip(shape, low, high, strict=True)
                for index, parts in zip(read.map.eval(corner, []), extents, strict=True):
                    assert 0 <= index < sum(parts), f"{read.map} at {corner} of {shape}"
            index = stage.result.eval(corner, [])
            assert all(0 <= i < n for i, n in zip(index, stage.result_shape, strict=True))


def require_computable(op: TensorOp) -> None:
    """Raise the error that occurs when the op is computed, AssertionError included."""
    types: Types = [value.type for value in (*op.operands, *op.results)]
    if any(-1 in type.get_shape() for type in types):
        return
    if isinstance(op, StructuredOp | IndirectOp):
        require_inside(op)
    if max(math.prod(type.get_shape()) for type in types) > 10**6:
        return
    operands = [
        (np.ones if isinstance(type.element_type, AnyFloat) else np.zeros)(
            type.get_shape(), to_numpy(type.element_type)
        )
        for type in types[: len(op.operands)]
    ]
    with np.errstate(all="ignore"):
        values = op.evaluate(*operands)
    for value, type in zip(values, types[len(op.operands) :], strict=True):
        assert value.shape == type.get_shape()
        assert value.dtype == to_numpy(type.element_type)
    if isinstance(op, DecomposableOp):
        module = op.get_toplevel_object()
        assert isinstance(module, ModuleOp)
        decompose_all(module)
        verify_module(module)


def check(build: Build, operands: list[Any], every: int) -> None:
    op = built(build, operands)
    for mutant in itertools.islice(mutants(op), 0, None, every):
        if (new := accepted(op, mutant)) is not None:
            try:
                require_computable(new)
            except Exception as error:
                raise AssertionError(f"'{op.name}' is valid where {mutant[0]}") from error


def samples() -> list[Any]:
    return [pytest.param(build, operands, id=name) for name, build, operands in SAMPLES]


@pytest.mark.parametrize(("build", "operands"), samples())
def test_some_mutants_that_verify_can_be_computed(build: Build, operands: list[Any]) -> None:
    check(build, operands, EVERY)


@pytest.mark.slow
@pytest.mark.parametrize(("build", "operands"), samples())
def test_mutants_that_verify_can_be_computed(build: Build, operands: list[Any]) -> None:
    check(build, operands, 1)


@pytest.mark.parametrize(("build", "operands"), samples())
def test_verifying_a_valid_op_prints_no_attribute(
    build: Build, operands: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    op = built(build, operands)

    def printed(attribute: Attribute) -> str:
        raise AssertionError(f"a {type(attribute).__name__} is printed for no message")

    monkeypatch.setattr(Attribute, "__str__", printed)
    op.verify()


def test_operands_have_no_negative_extents() -> None:
    build, operands = next((build, types) for name, build, types in SAMPLES if name == "pad")
    op = built(build, operands)
    # Padded by 3, such a dim would have one element.
    mutant = ("negative", [TensorType(f32, [-2, 3])], None, dict(op.attributes))
    assert accepted(op, mutant) is None


@pytest.mark.parametrize("of", ["conv", "pool"])
def test_padding_makes_no_larger_tensor_than_there_are(of: str) -> None:
    """Check the tensor that `expand-padding` makes: each dim alone would fit."""
    x, w = (create_ssa_value(TensorType(f32, [2, 3, size, size])) for size in (9, 3))
    fields = {
        "strides": (1 << 39, 1 << 39),
        "dilations": (1, 1),
        "pad_low": (1 << 40, 1 << 40),
        "pad_high": (1, 1),
    }
    with pytest.raises(VerifyException, match="elements"):
        if of == "conv":
            ConvOp.get(x, w, **fields, groups=1)
        else:
            PoolOp.get(x, "max", (3, 3), **fields)
