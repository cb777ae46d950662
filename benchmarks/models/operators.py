"""Models of one operator: what is bound by arithmetic of single elements, or by memory.

Shapes are those of transformers (rows of scores, of hidden layers), of images, of a vocabulary, and
some that no vector divides.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 21
SCORES = ((1536, 128), (768, 1024), (8, 50257), (1, 12, 197, 197), (64, 1000), (4096, 33))
HIDDEN = ((128, 768), (197, 768), (1024, 1024), (512, 4096), (2048, 61))
IMAGES = ((1, 64, 56, 56), (1, 320, 32, 32), (1, 128, 28, 28))
PLAIN = ((1024, 4096), (256, 1024), (64, 512))


def make_operator(
    operator: str,
    shape: Sequence[int],
    inputs: int = 1,
    scales: int = 0,
    **attributes: int | str,
) -> ModelProto:
    """One `operator` on `inputs` tensors of `shape`, and on two known vectors of `scales`."""
    names = [f"x{number}" for number in range(inputs)]
    vectors = ["scale", "bias"] if scales else []
    random = np.random.default_rng(0)
    known = [
        numpy_helper.from_array(random.standard_normal(scales, np.float32), name)
        for name in vectors
    ]
    node = helper.make_node(operator, [*names, *vectors], ["y"], **attributes)
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in (*names, "y")]
    graph = helper.make_graph([node], operator, values[:-1], values[-1:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _models() -> Iterator[tuple[str, Callable[[], ModelProto]]]:
    def name(operator: str, shape: Sequence[int]) -> str:
        return f"{operator}_{'x'.join(map(str, shape))}"

    for shape in SCORES:
        yield name("softmax", shape), partial(make_operator, "Softmax", shape)
    for shape in HIDDEN:
        norm = partial(make_operator, "LayerNormalization", shape, scales=shape[-1])
        yield name("layer_norm", shape), norm
        yield name("gelu", shape), partial(make_operator, "Gelu", shape)
        tanh = partial(make_operator, "Gelu", shape, approximate="tanh")
        yield name("gelu_by_tanh", shape), tanh
    for shape in IMAGES:
        norm = partial(make_operator, "InstanceNormalization", shape, scales=shape[1])
        yield name("instance_norm", shape), norm
        norm = partial(make_operator, "GroupNormalization", shape, scales=shape[1], num_groups=32)
        yield name("group_norm", shape), norm
    for shape in PLAIN:
        yield name("add", shape), partial(make_operator, "Add", shape, inputs=2)
        for operator in ("Exp", "Sigmoid", "Tanh"):
            yield name(operator.lower(), shape), partial(make_operator, operator, shape)


MODELS = dict(_models())
