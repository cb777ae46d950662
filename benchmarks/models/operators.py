"""Models of one operator: what is bound by arithmetic of single elements, or by memory.

Shapes are those of transformers (rows of scores, of hidden layers), of images, of a vocabulary, and
some that are no multiple of a vector. Reductions, matmuls by a column and pools are in ONNX's
layouts here, so that times include reorders.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

OPSET = 21
SCORES = ((1536, 128), (768, 1024), (8, 50257), (1, 12, 197, 197), (64, 1000), (4096, 33))
HIDDEN = ((128, 768), (197, 768), (1024, 1024), (512, 4096), (2048, 61))
IMAGES = ((1, 64, 56, 56), (1, 320, 32, 32), (1, 128, 28, 28))
PLAIN = ((1024, 4096), (256, 1024), (64, 512))
FUNCTIONS = ("Exp", "Sigmoid", "Tanh", "Sin", "Cos", "Atan", "Erf", "Softplus")
REDUCED = (
    ((1024, 1024), (1,)),
    ((1024, 1024), (0,)),
    ((65536, 16), (1,)),
    ((65536, 16), (0,)),
    ((8, 256, 32, 32), (2, 3)),
    ((8, 256, 32, 32), (1,)),
    ((64, 64, 64), (0, 2)),
    ((3, 1000003), (1,)),
)
LARGEST = ((16, 50257, 5), (1, 100000, 100), (1000, 1000, 10), (128, 1000, 1000))
"""Rows, their lengths, and how many of each are wanted."""
POOLED = (((1, 64, 112, 112), 3, 2), ((1, 256, 28, 28), 3, 1), ((1, 256, 20, 20), 5, 1))
"""Images, windows, strides."""
COLUMNS = (((512, 512), (512, 1)), ((4096, 1024), (1024, 1)), ((8, 128, 64), (8, 64, 1)))
SUMMED = ((1024, 1024), 0), ((1024, 1024), 1), ((8, 128, 768), 1)
BYTES = (
    ((12, 128, 64), (12, 64, 128)),
    ((512, 512), (512, 512)),
    ((16, 768), (768, 512)),
    ((1, 768), (768, 512)),
)
"""Products of bytes that are computed both: scores, hidden layers, few rows."""
FOLDED = (
    ((1, 576, 3136), (56, 56), 3, 1, 1),
    ((1, 256, 784), (56, 56), 2, 2, 0),
    ((1, 1024, 784), (56, 56), 4, 2, 1),
    ((8, 768, 196), (224, 224), 16, 16, 0),
)
"""Columns, the image that they are added up to, and extent, stride and padding of the blocks."""
TRANSFORMED = ((1, 4096), (1, 65536), (32, 1024))
"""Signals and their lengths."""

Known = Sequence[NDArray[Any]]


def make_operator(
    operator: str,
    *shapes: Sequence[int],
    known: Known = (),
    results: int = 1,
    kinds: Sequence[int] = (),
    **attributes: Any,
) -> ModelProto:
    """Make one `operator` on tensors of `shapes`, then on `known` ones, with `results` results.

    The tensors are of the ONNX types `kinds`, by default of f32.
    """
    names = [f"x{number}" for number in range(len(shapes))]
    weights = [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(known)]
    made = [f"y{number}" for number in range(results)]
    node = helper.make_node(operator, [*names, *(w.name for w in weights)], made, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in zip(
            names, kinds or [TensorProto.FLOAT] * len(shapes), shapes, strict=True
        )
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([node], operator, inputs, outputs, weights)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return shape_inference.infer_shapes(model, data_prop=True)


def _vectors(length: int) -> Known:
    """Return a scale and a bias."""
    random = np.random.default_rng(0)
    return [random.standard_normal(length, np.float32) for _ in range(2)]


def _numbers(*values: int) -> NDArray[Any]:
    return np.array(values, np.int64)


def _name(operator: str, shape: Sequence[int], *more: int) -> str:
    return "_".join([operator, "x".join(map(str, shape)), *map(str, more)])


Models = Iterator[tuple[str, Callable[[], ModelProto]]]


def _rows() -> Models:
    for shape in SCORES:
        yield _name("softmax", shape), partial(make_operator, "Softmax", shape)
    for shape in HIDDEN:
        norm = partial(make_operator, "LayerNormalization", shape, known=_vectors(shape[-1]))
        yield _name("layer_norm", shape), norm
    yield "softmax_64x64x64_1", partial(make_operator, "Softmax", (64, 64, 64), axis=1)
    for *shape, count in LARGEST:
        known = [_numbers(count)]
        made = partial(make_operator, "TopK", shape, known=known, results=2)
        yield _name("top_k", shape, count), made
    for shape, axes in REDUCED:
        known = [_numbers(*axes)]
        for operator in ("ReduceSum", "ReduceMax"):
            name = _name(operator[:6].lower() + "_" + operator[6:].lower(), shape, *axes)
            yield name, partial(make_operator, operator, shape, known=known)
    for shape, axis in SUMMED:
        known = [np.array(axis, np.int64)]
        yield _name("cum_sum", shape, axis), partial(make_operator, "CumSum", shape, known=known)
    for left, right in COLUMNS:
        yield _name("column", left), partial(make_operator, "MatMul", left, right)
    for left, right in BYTES:
        for name, kind in (("bytes", TensorProto.INT8), ("unsigned_bytes", TensorProto.UINT8)):
            kinds = (TensorProto.UINT8, kind)
            made = partial(make_operator, "MatMulInteger", left, right, kinds=kinds)
            yield _name(name, left, right[-1]), made


def _elements() -> Models:
    for shape in HIDDEN:
        yield _name("gelu", shape), partial(make_operator, "Gelu", shape)
        tanh = partial(make_operator, "Gelu", shape, approximate="tanh")
        yield _name("gelu_by_tanh", shape), tanh
    for shape in PLAIN:
        yield _name("add", shape), partial(make_operator, "Add", shape, shape)
        for operator in FUNCTIONS:
            yield _name(operator.lower(), shape), partial(make_operator, operator, shape)


def _images() -> Models:
    for shape in IMAGES:
        known = _vectors(shape[1])
        norm = partial(make_operator, "InstanceNormalization", shape, known=known)
        yield _name("instance_norm", shape), norm
        norm = partial(make_operator, "GroupNormalization", shape, known=known, num_groups=32)
        yield _name("group_norm", shape), norm
        for mode in ("reflect", "edge"):
            pads = [_numbers(0, 0, 3, 3, 0, 0, 3, 3)]
            yield (
                _name(f"pad_{mode}", shape),
                partial(make_operator, "Pad", shape, known=pads, mode=mode),
            )
    for shape, window, stride in POOLED:
        pads = [window // 2] * 4
        for operator in ("MaxPool", "AveragePool"):
            name = _name("max_pool" if operator == "MaxPool" else "average_pool", shape, window)
            yield (
                name,
                partial(
                    make_operator,
                    operator,
                    shape,
                    kernel_shape=[window] * 2,
                    strides=[stride] * 2,
                    pads=pads,
                ),
            )


def _signals() -> Models:
    for shape, image, extent, stride, pad in FOLDED:
        known = [_numbers(*image), _numbers(extent, extent)]
        lists = {"strides": [stride] * 2, "pads": [pad] * 4}
        name = _name("col2im", shape, extent, stride)
        yield name, partial(make_operator, "Col2Im", shape, known=known, **lists)
    for count, length in TRANSFORMED:
        known = [np.array(length), np.array(1)]
        for name, parts, is_onesided in (("dft", 2, 0), ("real_dft", 1, 1)):
            made = partial(make_operator, "DFT", (count, length, parts), known=known)
            yield _name(name, (count, length)), partial(made, onesided=is_onesided)


MODELS = dict([*_rows(), *_elements(), *_images(), *_signals()])
