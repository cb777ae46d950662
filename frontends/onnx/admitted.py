"""Deviations from ONNX's schemas: types, ops, ranks admitted in addition, attributes ignored."""

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
        (op, kind): "the op is defined equally for all integer types"
        for op, kinds in (
            ("Range", ("int8", "uint8", "uint16", "uint32", "uint64")),
            ("ReduceMax", ("int16", "uint16")),
            ("ReduceMin", ("int16", "uint16")),
        )
        for kind in kinds
    },
    ("Shrink", "bfloat16"): "models converted to bfloat16 contain it",
}
"""Op type and element type, as ONNX's schemas write it, to the reason why models have the pair.

Every entry is tested for correct results on that type.
"""

ADMITTED_OPS: Mapping[tuple[str, str], str] = {
    ("", "GroupNormalization"): "ONNX Runtime takes it in opsets 18 to 20, which deprecate it",
    ("", "LayerNormalization"): "ONNX Runtime writes it into models of opsets before 17",
}
"""Domain and op type to the reason why models have the op in opsets that do not.

These are the opsets before the one that introduced it, and those that deprecate it.
"""

ADMITTED_SCALARS: Mapping[str, str] = {
    f"Reduce{kind}": "torch.onnx exports reductions of scalars, whose dims PyTorch counts as one"
    for kind in (
        "L1",
        "L2",
        "LogSum",
        "LogSumExp",
        "Max",
        "Mean",
        "Min",
        "Prod",
        "Sum",
        "SumSquare",
    )
}
"""Op type to the reason why models apply the op to a tensor of rank 0 along dim 0 or -1."""

IGNORED: Mapping[tuple[str, str], str] = {
    ("BatchNormalization", "momentum"): "only training updates running statistics",
    ("Cast", "round_mode"): "only float8 types are rounded otherwise than to nearest",
    ("Cast", "saturate"): "only float8 types distinguish two results out of range",
    ("CastLike", "round_mode"): "as for Cast",
    ("CastLike", "saturate"): "as for Cast",
    ("Dropout", "ratio"): "inference drops nothing",
    ("Dropout", "seed"): "inference drops nothing",
    ("Gemm", "broadcast"): "the shape of C determines whether it is broadcast",
    ("MaxPool", "storage_order"): "it only affects the optional output of indices",
    ("TopK", "sorted"): "0 permits any order, a sorted one included",
    ("TreeEnsemble", "nodes_hitrates"): "a performance hint",
}
"""Op type and attribute to the reason why its importer may ignore the attribute.

Any other attribute that differs from its default and that no importer reads is an error.
"""


def may_ignore(op_type: str, attribute: str) -> bool:
    """Return whether an importer may ignore an attribute whatever its value is."""
    # In opset 1 it names the inputs that an executor may overwrite.
    return attribute == "consumed_inputs" or (op_type, attribute) in IGNORED


def admits(op_type: str, element_type: str) -> bool:
    """Return whether braid imports an op on an element type that ONNX does not allow."""
    return (op_type, element_type) in ADMITTED_TYPES
