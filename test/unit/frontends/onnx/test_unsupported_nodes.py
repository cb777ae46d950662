"""Messages about nodes that braid does not support: all are counted, in every graph."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import braid
from braid.support.errors import UnsupportedError
from braid.support.unsupported_ops import PAGE, UnsupportedNodesError, nearest_op

node = helper.make_node
VENDOR = "acme"


def model(
    nodes: Sequence[NodeProto], *, opset: int = 18, functions: Sequence[FunctionProto] = ()
) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    scale = numpy_helper.from_array(np.ones(8, np.float32), "s")
    yes = numpy_helper.from_array(np.array(True), "yes")
    count = numpy_helper.from_array(np.array(100), "count")
    opsets = [helper.make_opsetid(d, v) for d, v in (("", opset), (VENDOR, 1), ("own", 1))]
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], [scale, yes, count]),
        opset_imports=opsets,
        functions=functions,
        ir_version=9,
    )


def refusal(proto: ModelProto) -> UnsupportedNodesError:
    with pytest.raises(UnsupportedNodesError) as caught:
        braid.compile(proto)
    return caught.value


def test_a_missing_op_is_named_with_all_that_helps() -> None:
    nodes = [
        node("FusedConv", ["x"], ["a"], domain=VENDOR, name="first"),
        node("Bar", ["a"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("FusedConv", ["c"], ["y"], domain=VENDOR),
    ]
    assert str(refusal(model(nodes))) == (
        "g: error: node 'first' (FusedConv): the op acme.FusedConv is not supported "
        "(domain 'acme', opset 1)\n"
        "note: 2 more nodes of the model would still be missing: Bar (1), "
        "acme.FusedConv (1)\n"
        "hint: the nearest supported op is 'com.microsoft.FusedConv'; "
        f"{PAGE} shows how to add an op"
    )


def test_the_page_exists() -> None:
    assert Path(PAGE).is_absolute() and Path(PAGE).read_text().startswith("# Import an op")


def test_functions_and_graphs_are_counted() -> None:
    inner = [node("Foo", ["a"], ["b"]), node("Bar", ["b"], ["c"])]
    function = helper.make_function("own", "F", ["a"], ["c"], inner, [helper.make_opsetid("", 18)])
    body = helper.make_graph(
        [node("Foo", ["v"], ["v2"]), node("Identity", ["go"], ["go2"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        node("F", ["x"], ["a"], domain="own"),
        node("Loop", ["count", "", "a"], ["y"], body=body),
    ]
    error = refusal(model(nodes, functions=[function]))
    assert [op for op, _ in error.found] == ["Foo", "Bar", "Foo"]


def normalization(x: str, y: str, **attributes: int) -> NodeProto:
    """Return a BatchNormalization that braid supports: for inference, with a mean and a
    variance."""
    outputs = [y, f"{y}m", f"{y}v"] if attributes else [y]
    return node("BatchNormalization", [x, "s", "s", "s", "s"], outputs, name=y, **attributes)


def test_attributes_of_known_ops_are_counted_too() -> None:
    constant = node("Constant", [], ["d"], name="constant", value_string="text")
    nodes = [normalization("x", "a"), constant, node("Add", ["a", "d"], ["y"])]
    alone = refusal(model(nodes))
    assert alone.message == (
        "node 'constant' (Constant): only tensors and numbers are supported, not strings or sparse "
        "tensors"
    )
    assert not alone.notes and not alone.lacks_ops
    after = [*nodes[:2], node("Foo", ["a"], ["f"]), node("Add", ["f", "d"], ["y"])]
    error = refusal(model(after))
    assert [op for op, _ in error.found] == ["Foo", "Constant"]
    assert error.notes[1].message == alone.message


def test_what_depends_on_a_refused_node_is_not_blamed() -> None:
    """The shape of the matmul is unknown, so it must not be reported as wrong."""
    nodes = [node("Foo", ["x"], ["a"]), node("MatMul", ["a", "x"], ["y"])]
    assert [op for op, _ in refusal(model(nodes)).found] == ["Foo"]


@pytest.mark.parametrize("op", ["Gelu", "Det"])
def test_a_newer_opset_is_the_way_out(op: str) -> None:
    error = refusal(model([node(op, ["x"], ["y"])], opset=7))
    assert f"the op {op} is not supported (domain 'ai.onnx', opset 7)" in error.message
    assert error.hint and f"'{op}' is supported in newer opsets" in error.hint


def test_names_from_a_hostile_file_are_cut() -> None:
    nodes = [node("x" * 100_000 + str(n), ["x"], ["y" if n == 0 else f"y{n}"]) for n in range(50)]
    text = str(refusal(model(nodes)))
    assert len(text) < 10_000 and "and 29 other ops" in text


def test_the_error_survives_a_pickle() -> None:
    error = refusal(model([node("Foo", ["x"], ["a"]), node("Bar", ["x"], ["y"])]))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and isinstance(copy, UnsupportedError)


@pytest.mark.parametrize(
    ("op", "nearest"),
    [
        ("com.microsoft.Gelu", "Gelu"),  # of the same name in another domain
        ("Rellu", "Relu"),
        ("abss", "abs"),
        ("BatchNormalisation", "BatchNormalization"),
        ("com.microsoft.SkipLayerNormalization", "LayerNormalization"),
        ("com.microsoft.QLinearMul", "Mul"),  # and not QLinearMatMul
        ("com.microsoft.MatMulNBits", "MatMul"),
        ("real_dynamic_slice", "dynamic_slice"),
        # Rather nothing than nonsense.
        ("Foo", None),
        ("reduce_precision", None),
        ("all_reduce", None),
        ("StringConcat", None),
        ("ImageDecoder", None),
        ("GroupNorm", None),
        ("", None),
    ],
)
def test_the_nearest_op(op: str, nearest: str | None) -> None:
    known = """Relu Gelu Conv Concat Mul MatMul QLinearMatMul LayerNormalization BatchNormalization
    abs reduce slice dynamic_slice Norm.Gathered Decoded""".split()  # noqa: SIM905
    assert nearest_op(op, known) == nearest
