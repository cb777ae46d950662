"""The values of enumerated string attributes, which ONNX's schemas list only in prose."""

from collections.abc import Mapping

_PADDING = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "")
_DIRECTION = ("forward", "reverse", "bidirectional")
_SCATTER = ("none", "add", "mul", "max", "min")
_LOSS = ("none", "sum", "mean")
_ROUNDING = ("up", "down", "nearest")

CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{
        (op, "auto_pad"): _PADDING
        for op in (
            "AveragePool",
            "Conv",
            "ConvInteger",
            "ConvTranspose",
            "FusedConv",
            "LpPool",
            "MaxPool",
            "NhwcConv",
            "QLinearAveragePool",
            "QLinearConv",
        )
    },
    **{(op, "direction"): _DIRECTION for op in ("GRU", "LSTM", "RNN")},
    **{(op, "reduction"): _SCATTER for op in ("ScatterElements", "ScatterND")},
    **{(op, "reduction"): _LOSS for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{(op, "round_mode"): _ROUNDING for op in ("Cast", "CastLike")},
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("bilinear", "nearest", "bicubic", "linear", "cubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("Momentum", "mode"): ("standard", "nesterov"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        "tf_half_pixel_for_nn",
    ),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("TfIdfVectorizer", "mode"): ("TF", "IDF", "TFIDF"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
}
"""Op type and attribute to the values that are allowed; any other value is an error."""
