"""What braid imports although ONNX does not allow it, and what it may leave unread."""

from collections.abc import Mapping

_PYTORCH = "torch.onnx exports the op of PyTorch, which takes integers"

ADMITTED_TYPES: Mapping[tuple[str, str], str] = {
    ("AveragePool", "int32"): _PYTORCH,
    ("AveragePool", "int64"): _PYTORCH,
    ("Conv", "int32"): _PYTORCH,
    ("Conv", "int64"): _PYTORCH,
    ("GlobalAveragePool", "int32"): _PYTORCH,
    ("GlobalAveragePool", "int64"): _PYTORCH,
    ("GlobalMaxPool", "int32"): _PYTORCH,
    ("GlobalMaxPool", "int64"): _PYTORCH,
    ("MaxPool", "int32"): _PYTORCH,
    ("MaxPool", "int64"): _PYTORCH,
    ("TopK", "bool"): "torch.onnx exports it of torch.sort",
    **{
        (op, kind): "all integers are as simple as those that ONNX has"
        for op, kinds in (
            ("Range", ("int8", "uint8", "uint16", "uint32", "uint64")),
            ("ReduceMax", ("int16", "uint16")),
            ("ReduceMin", ("int16", "uint16")),
        )
        for kind in kinds
    },
    ("Shrink", "bfloat16"): "models converted to bfloat16 have it",
}
"""Op type and element type, as ONNX's schemas write it, to why models have them.

Only ops whose results on that type are right, and tested, may stand here.
"""

ADMITTED_OPS: Mapping[tuple[str, str], str] = {
    ("", "LayerNormalization"): "ONNX Runtime writes it into models of opsets before 17",
}
"""Domain and op type to why models of opsets before the op's first one have it."""

IGNORED: Mapping[tuple[str, str], str] = {
    ("BatchNormalization", "momentum"): "it moves running statistics, which only training gives",
    ("Cast", "round_mode"): "only narrow floats are rounded in another way than to the nearest",
    ("Cast", "saturate"): "only narrow floats can be out of range in two ways",
    ("CastLike", "round_mode"): "as of Cast",
    ("CastLike", "saturate"): "as of Cast",
    ("Dropout", "ratio"): "inference drops nothing",
    ("Dropout", "seed"): "inference drops nothing",
    ("Gemm", "broadcast"): "shapes say whether C is repeated",
    ("MaxPool", "storage_order"): "it says how indices are counted, which are an optional output",
    ("TopK", "sorted"): "without it any order is right, and so is a sorted one",
    ("TreeEnsemble", "nodes_hitrates"): "a hint about speed",
}
"""Op type and attribute to why it says nothing where its importer does not read it.

Every other attribute that is there, is not its default and is not read is refused.
"""


def may_ignore(op_type: str, attribute: str) -> bool:
    """Return whether an attribute says nothing where its importer does not read it."""
    # Opset 1 tells executors with it which inputs they may overwrite.
    return attribute == "consumed_inputs" or (op_type, attribute) in IGNORED


def admits(op_type: str, element_type: str) -> bool:
    """Return whether an op takes an element type that ONNX does not allow."""
    return (op_type, element_type) in ADMITTED_TYPES
