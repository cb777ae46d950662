"""Importers of ops that prepare features: scaling, normalizing, imputing, selecting."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    reduce,
    reshape,
    scalar,
    slice_dim,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.scores import DOMAIN, rows_of


@importer("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(b: Builder, node: Node) -> SSAValue:
    """Import elements of the last dim; a vector is taken for a row."""
    x, indices = node.input(0), node.input(1)
    shape = extents_of(x)
    rows = x if len(shape) > 1 else reshape(b, x, [1, *shape])
    flat = reshape(b, indices, [math.prod(extents_of(indices))])
    return b.emit(GatherOp.get(rows, flat, len(extents_of(rows)) - 1))


@importer("Binarizer", domain=DOMAIN)
def binarizer(b: Builder, node: Node) -> SSAValue:
    """Import 1 where x is above the threshold, 0 elsewhere."""
    x = node.input(0)
    above = apply(b, "gt", x, scalar(b, node.number("threshold", 0.0), x))
    return cast(b, above, element_type_of(x))


@importer("Scaler", domain=DOMAIN)
def scaler(b: Builder, node: Node) -> SSAValue:
    """Import (x - offset) · scale in f32; both have a number for each feature, or one for all."""
    x = cast(b, node.input(0), f32)
    offset, scale = node.numbers("offset", ()), node.numbers("scale", ())
    if len(offset) != len(scale):
        node.fail(f"offset has {len(offset)} elements, but scale {len(scale)}")
    lines = _by_feature(node, x, offset, "offset"), _by_feature(node, x, scale, "scale")
    shifted = apply(b, "sub", x, b.constant(lines[0].astype(np.float32)))
    return apply(b, "mul", shifted, b.constant(lines[1].astype(np.float32)))


def _by_feature(node: Node, x: SSAValue, numbers: Sequence[float], what: str) -> np.ndarray:
    """Return one number for each feature of the last dim, or one for all."""
    shape = extents_of(x)
    if not shape:
        node.fail("its input is a scalar, expected at least one dim")
    if not numbers:
        node.fail(f"{what} is empty, expected a number for each feature or one for all")
    # A vector is one row.
    features = shape[-1]
    if len(numbers) != 1 and len(numbers) != features:
        node.fail(f"{what} has {len(numbers)} elements, expected 1 or {features}")
    return np.array(numbers).reshape([1] * (len(shape) - 1) + [-1])


@importer("Normalizer", domain=DOMAIN)
def normalizer(b: Builder, node: Node) -> SSAValue:
    """Import rows divided by their largest number, the sum of absolute values, or the length."""
    given = node.input(0)
    rank = len(extents_of(given))
    if rank not in (1, 2):
        node.fail(f"its input has {rank} dims, expected 1 or 2")
    x, dims = cast(b, given, f32), [rank - 1]
    match node.text("norm", "MAX"):
        case "MAX":
            return _over_nonzero(b, x, reduce(b, "maximum", x, dims))
        case "L1":
            return _over_nonzero(b, x, reduce(b, "add", apply(b, "abs", x), dims))
        case "L2":
            squares = reduce(b, "add", apply(b, "mul", x, x), dims)
            length = apply(b, "sqrt", squares)
            return _over_nonzero(b, x, length)
        case other:
            node.fail(f"norm is '{other}', expected one of MAX, L1, L2")


def _over_nonzero(b: Builder, x: SSAValue, norm: SSAValue) -> SSAValue:
    """Return x / norm, or x where that is 0."""
    is_zero = apply(b, "eq", norm, scalar(b, 0, norm))
    return apply(b, "div", x, apply(b, "select", is_zero, scalar(b, 1, norm), norm))


@importer("Imputer", domain=DOMAIN)
def imputer(b: Builder, node: Node) -> SSAValue:
    """Import one number of each feature, or one for all, in the place of missing values."""
    x = node.input(0)
    kind = "float" if is_float(element_type_of(x)) else "int64"
    given = [node.numbers("imputed_value_floats", ()), node.integers("imputed_value_int64s", ())]
    replaced = [
        node.number("replaced_value_float", 0.0),
        node.integer("replaced_value_int64", 0),
    ]
    at = kind == "int64"
    values = given[at]
    if given[not at]:
        node.fail(f"values of the other kind are given, expected imputed_value_{kind}s alone")
    line = _by_feature(node, x, values, f"imputed_value_{kind}s")
    numbers = b.constant(line.astype(to_numpy(element_type_of(x))))
    old = replaced[at]
    is_missing = apply(b, "isnan", x) if math.isnan(old) else apply(b, "eq", x, scalar(b, old, x))
    return apply(b, "select", is_missing, numbers, x)


@importer("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(b: Builder, node: Node) -> SSAValue:
    """Import the inputs side by side in f32.

    Each is cut, or filled up with zeros, to its number of columns in `inputdimensions`.
    """
    inputs = [rows_of(b, node, node.input(i)) for i in range(len(node.inputs))]
    widths = node.integers("inputdimensions", ())
    if len(widths) != len(inputs):
        node.fail(f"inputdimensions has {len(widths)} elements, expected {len(inputs)}")
    parts: list[SSAValue] = []
    for value, width in zip(inputs, widths, strict=True):
        if width < 0:
            node.fail(f"inputdimensions has {width}, expected no negative number")
        columns = fixed(extents_of(value)[1], "the features of a row")
        part = cast(b, value, f32)
        if width < columns:
            part = slice_dim(b, part, 1, 0, width)
        parts.append(part)
        if width > columns:
            rows = extents_of(value)[0]
            zeros = b.constant(np.zeros((1, width - columns), np.float32))
            parts.append(broadcast(b, zeros, [rows, width - columns]))
    return concat(b, parts, 1)
