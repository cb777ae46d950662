"""Checks against ONNX's schemas: element types, attributes and counts of every op."""

import ast
import inspect
import sys
from functools import cache
from typing import Any

import numpy as np
import onnx.defs
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.frontends.onnx.admitted import ADMITTED_TYPES, may_ignore
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.choices import CHOICES
from braid.frontends.onnx.importers import find_importer
from braid.frontends.onnx.signatures import signature
from braid.support.errors import BraidError, UnsupportedError

REFUSED = {
    ("Constant", "sparse_value"),
    ("Constant", "value_string"),
    ("Constant", "value_strings"),
    ("GroupNormalization", "stash_type"),
    ("LayerNormalization", "stash_type"),
    ("RMSNormalization", "stash_type"),
    ("Range", "stash_type"),
    ("TfIdfVectorizer", "pool_strings"),
}
"""Attributes that no importer reads: nodes with a value other than the default are refused."""


HEADS = {"q_num_heads": 2, "kv_num_heads": 2}


@cache
def texts_of(module: str) -> frozenset[str]:
    """Return the texts in a module of importers and in its imports; for formatted ones their
    parts."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("braid.frontends.onnx.ops", "braid.frontends.onnx.building.windows")
        ):
            found |= texts_of(str(node.module))
    return frozenset(text for text in found if isinstance(text, str))


def is_read(name: str, texts: frozenset[str]) -> bool:
    """Whether the importers name an attribute; trees name some by side: `nodes_{side}leafs`."""
    sides = ("nodes_", "true", "false", "nodeids", "leafs")
    return name in texts or name in {
        f"nodes_{side}{end}" for side in sides[1:3] for end in sides[3:] if set(sides) <= texts
    }


def schemas() -> list[Any]:
    """Every version of every op that has an importer."""
    everything: Any = onnx.defs.get_all_schemas_with_history()
    return [s for s in everything if find_importer(s.name, s.since_version, s.domain)]


def test_every_attribute_of_every_op_is_read_ignored_or_refused() -> None:
    unread: set[tuple[str, str]] = set()
    for schema in schemas():
        importer = find_importer(schema.name, schema.since_version, schema.domain)
        assert importer is not None
        texts = texts_of(importer.__module__)
        unread |= {(schema.name, a) for a in schema.attributes if not is_read(a, texts)}
    assert len(schemas()) > 400
    assert {pair for pair in unread if not may_ignore(*pair)} == REFUSED


def model_of(op: str, kinds: list[int], shapes: list[list[int]], opset: int, **attributes: Any):
    names = [f"x{i}" for i in range(len(kinds))]
    values = zip(names, kinds, shapes, strict=True)
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in values],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


KINDS = [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 16]
"""Element types: all that have more than 4 bits, but for uint16 and 8-bit floats."""


@pytest.mark.parametrize("opset", [9, 18, 22])
def test_element_types_of_ops_of_one_input(opset: int) -> None:
    """Attributes that ONNX does not allow, in this opset or in the newest one, are refused by
    name."""
    checked = 0
    newest = {s.name: s for s in onnx.defs.get_all_schemas() if not s.domain}
    for name, latest in newest.items():
        if not onnx.defs.has(name, max_inclusive_version=opset, domain=""):
            continue
        schema: Any = onnx.defs.get_schema(name, opset)
        required = [a for a in schema.attributes.values() if a.required]
        counts = (schema.min_input, schema.min_output, len(required))
        if counts != (1, 1, 0) or not find_importer(name, opset):
            continue
        allowed = {*schema.inputs[0].types, *latest.inputs[0].types}
        for kind in KINDS:
            text = TensorProto.DataType.Name(kind).lower()
            is_admitted = (name, text) in ADMITTED_TYPES
            if {f"tensor({text})", f"optional(tensor({text}))"} & allowed or is_admitted:
                continue
            checked += 1
            with pytest.raises(BraidError, match=f"has element type {text}, which ONNX does not"):
                import_onnx(model_of(name, [kind], [[1, 2, 4, 4]], opset))
    assert checked > 100


@pytest.mark.parametrize(
    ("op", "kinds", "attributes", "message"),
    [
        ("Add", [1, 7], {}, "another value of the same type variable 'T' has float"),
        ("Concat", [1, 11], {"axis": 0}, "another value of the same type variable 'T' has float"),
        ("Where", [1, 1, 1], {}, "'condition'.* has element type float, which ONNX does not"),
        ("Relu", [1], {"alpha": 1.0}, "ONNX has no attribute 'alpha' of this op in opset 21"),
        ("Elu", [1], {"alpha": 1}, "attribute 'alpha' has type INT, expected FLOAT"),
        ("Cast", [1], {}, "attribute 'to' is missing"),
        ("Relu", [1, 1], {}, "it has 2 inputs, expected 1"),
        ("Gemm", [1], {}, "it has 1 inputs, expected at least 2"),
        ("LayerNormalization", [1, 1], {"stash_type": 10}, "'stash_type' is supported only"),
    ],
)
def test_invalid_nodes_are_rejected(
    op: str, kinds: list[int], attributes: Any, message: str
) -> None:
    model = model_of(op, kinds, [[4, 4] for _ in kinds], 21, **attributes)
    with pytest.raises(BraidError, match=message):
        import_onnx(model)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "message"),
    [
        ("Conv", [[1, 3, 4, 4], [2, 3, 3, 3], [1]], {}, "no vector for the channels"),
        ("Conv", [[1, 3, 4, 4], [2, 3, 3, 3]], {"kernel_shape": [2, 3]}, "expected .* the weight"),
        ("Conv", [[1, 3, 4, 4], [2, 3, 3, 3]], {"strides": [1]}, "'strides' has 1 entries"),
        ("Conv", [[1, 3, 4, 4], [2, 3, 3, 3]], {"strides": [0, 1]}, "expected at least 1"),
        ("ConvTranspose", [[1, 2, 4, 4], [2, 3, 3, 3]], {"pads": [-1, 0, 0, 0]}, "at least 0"),
        ("MaxPool", [[1, 3, 4, 4]], {"kernel_shape": [2, 2, 2]}, "expected 2 as the input"),
        ("BatchNormalization", [[1, 3, 4]] + 4 * [[1]], {}, "no vector for the channels"),
        ("Clip", [[4], [4]], {}, r"input 1 has shape \[4\], expected one number"),
        ("Dropout", [[4], [4]], {}, r"input 1 has shape \[4\], expected one number"),
        ("GridSample", [[1, 1, 4, 4], [1, 2, 2, 3]], {}, r"expected \[1, …, 2\]"),
        ("Gelu", [[4]], {"approximate": "tan"}, "is 'tan', expected one of none, tanh"),
        ("Flatten", [[4]], {"axis": 2}, "there is no dim 2 where there are 1"),
        ("Concat", [[4], [4]], {"axis": 1}, "Concat"),
        ("RNN", [[2, 1, 3], [1, 4, 3], [1, 4, 5]], {"hidden_size": 4}, r"expected \[1, 4, 4\]"),
        ("RNN", [[2, 1, 3], [2, 4, 3], [2, 4, 4]], {}, r"expected \[1, 4, 3\]"),
        ("Split", [[4]], {}, "neither sizes nor num_outputs are given"),
    ],
)
def test_shapes_that_do_not_fit(op: str, shapes: Any, attributes: Any, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        import_onnx(model_of(op, [1] * len(shapes), shapes, 20, **attributes))


@pytest.mark.parametrize(
    ("op", "shapes", "kinds", "attributes"),
    [
        ("NegativeLogLikelihoodLoss", [[6, 5, 2], [3, 2]], [1, 7], {}),
        ("SoftmaxCrossEntropyLoss", [[6, 5, 2], [3, 2]], [1, 7], {}),
        ("Attention", [[2, 3, 8], [2, 8], [2, 3, 8]], [1, 1, 1], HEADS),
    ],
)
def test_ops_that_onnx_defines_by_others_ask_for_their_own_shapes(
    op: str, shapes: list[list[int]], kinds: list[int], attributes: dict[str, Any]
) -> None:
    """Models that ONNX's shape inference and ONNX Runtime refuse; the ops of the bodies repeat
    ones."""
    inputs = [
        helper.make_tensor_value_info(f"x{i}", kind, shape)
        for i, (kind, shape) in enumerate(zip(kinds, shapes, strict=True))
    ]
    node = helper.make_node(op, [value.name for value in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    with pytest.raises(BraidError, match="its inputs do not fit together"):
        import_onnx(model)
    with pytest.raises(Exception, match=r"ShapeInferenceError|INVALID_GRAPH"):
        InferenceSession(model.SerializeToString())


def test_choices_are_attributes_of_their_ops() -> None:
    names = {(s.name, name) for s in schemas() for name in s.attributes}
    newest = onnx.defs.get_all_schemas()
    names |= {(s.name, name) for s in newest for name in s.attributes}
    known = ((op, attribute, signature(op, MICROSOFT, 1)) for op, attribute in CHOICES)
    names |= {(op, name) for op, name, own in known if own and name in own.attributes}
    assert set(CHOICES) <= names


def test_an_attribute_given_twice() -> None:
    model = model_of("Elu", [1], [[4]], 21, alpha=1.0)
    model.graph.node[0].attribute.append(helper.make_attribute("alpha", 2.0))
    with pytest.raises(BraidError, match="attribute 'alpha' is given twice"):
        import_onnx(model)


def test_ops_that_the_opset_does_not_have() -> None:
    with pytest.raises(UnsupportedError, match=r"Det is not supported .*opset 9\)"):
        import_onnx(model_of("Det", [1], [[4, 4]], 9))
    import_onnx(model_of("LayerNormalization", [1, 1], [[4, 4], [4]], 11))


def test_an_unsupported_attribute_may_have_its_default() -> None:
    import_onnx(model_of("LayerNormalization", [1, 1], [[4, 4], [4]], 21, stash_type=1))


def run(model: ModelProto, *inputs: Any) -> Any:
    imported = import_onnx(model)
    return interpret(imported.module, list(inputs), parameters=imported.parameters)[0]


def quantization(op: str, kind: int, scale: Any, zero: Any = None, **attributes: Any) -> ModelProto:
    arrays = {"s": scale, **({} if zero is None else {"z": zero})}
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *arrays], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", kind, [2, 4])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    imports = [helper.make_opsetid("", 23)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11)


@pytest.mark.parametrize("scale", [np.float32(0.02), np.float16(0.25), np.full(4, 0.5, np.float32)])
@pytest.mark.parametrize("wanted", [TensorProto.FLOAT16, TensorProto.FLOAT])
def test_the_type_that_dequantize_linear_gives(scale: Any, wanted: int) -> None:
    x = np.array([[12, -45, 7, -3], [1, 2, 127, -128]], np.int8)
    model = quantization("DequantizeLinear", TensorProto.INT8, scale, output_dtype=wanted)
    result = run(model, x)
    assert result.dtype == helper.tensor_dtype_to_np_dtype(wanted)
    expected = x.astype(np.float32) * np.asarray(scale, np.float32)
    np.testing.assert_array_equal(result, expected.astype(result.dtype))
    if scale.dtype == np.float32:
        np.testing.assert_array_equal(
            result, InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        )


def test_the_type_that_quantize_linear_gives() -> None:
    x = np.array([[12, -45, 7, -3], [1, 2, 127, -128]], np.float32)
    kinds = {TensorProto.INT8: np.int8, TensorProto.UINT16: np.uint16}
    for kind, dtype in kinds.items():
        model = quantization("QuantizeLinear", 1, np.float32(0.5), output_dtype=kind)
        limits = np.iinfo(dtype)
        np.testing.assert_array_equal(run(model, x), np.clip(2 * x, limits.min, limits.max))
    zero = np.uint8(3)
    model = quantization("QuantizeLinear", 1, np.float32(0.5), zero, output_dtype=TensorProto.INT8)
    with pytest.raises(BraidError, match="output_dtype is i8, but the zero point is ui8"):
        run(model, x)
    precise = quantization("QuantizeLinear", 1, np.float32(1), precision=TensorProto.DOUBLE)
    with pytest.raises(UnsupportedError, match="precision is not FLOAT"):
        run(precise, x)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [([3], {}), ([5], {}), ([2, 3], {"block_size": 2}), ([2, 2], {"block_size": 4}), ([1, 2], {})],
)
def test_scales_that_do_not_fit(shape: list[int], attributes: Any) -> None:
    model = quantization("DequantizeLinear", 3, np.ones(shape, np.float32), **attributes)
    with pytest.raises(BraidError, match=r"a scale or zero point has shape"):
        import_onnx(model)


def test_kinds_of_attributes_are_those_of_the_protobuf() -> None:
    kinds = {a.type.value for s in schemas() for a in s.attributes.values()}
    assert kinds <= set(AttributeProto.AttributeType.values())
