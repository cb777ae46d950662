"""Drawing products, convolutions, pools and resizes."""

from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from benchmarks.generators.random_models.draft import NARROW, Draft, Value


def _image(draft: Draft) -> Value | None:
    return draft.pick(
        lambda v: (
            v.type in (TensorProto.FLOAT, *NARROW)
            and 3 <= v.rank <= 5
            and v.bound <= 1000
            and prod(v.shape) > 0
        )
    )


def matmul(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float and v.rank >= 1 and v.bound <= 1000)
    if value is None or prod(value.shape) == 0:
        return
    inner = value.shape[-1]
    columns = draft.draw(st.integers(1, 20))
    other = draft.weight(value.type, draft.draw(st.sampled_from(((inner,), (inner, columns)))))
    draft.add("MatMul", [value, other], bound=value.bound * 3 * inner)


def gemm(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float and v.rank == 2 and v.bound <= 1000)
    if value is None or prod(value.shape) == 0:
        return
    flip_a, flip_b = draft.draw(st.integers(0, 1)), draft.draw(st.integers(0, 1))
    inner = value.shape[0 if flip_a else 1]
    columns = draft.draw(st.integers(1, 20))
    other = draft.weight(value.type, (columns, inner) if flip_b else (inner, columns))
    inputs = [value, other]
    if draft.draw(st.booleans()):
        inputs.append(draft.weight(value.type, draft.draw(st.sampled_from(((), (columns,))))))
    attributes = {"transA": flip_a, "transB": flip_b, "alpha": 0.5, "beta": 2.0}
    draft.add("Gemm", inputs, bound=value.bound * 3 * inner + 6, **attributes)


def _windows(draft: Draft, value: Value, pads: bool = True) -> dict[str, Any]:
    """Return a kernel that fits, with strides, dilations and paddings below the kernel's extent."""
    spatial = value.shape[2:]
    kernel = [draft.draw(st.integers(1, min(3, extent))) for extent in spatial]
    found: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [draft.draw(st.integers(1, 2)) for _ in spatial],
    }
    if pads:
        ends = [draft.draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
        found["pads"] = ends
    return found


def conv(draft: Draft) -> None:
    if value := _image(draft):
        windows = _windows(draft, value)
        channels = value.shape[1]
        groups = draft.draw(st.sampled_from([g for g in (1, 2, channels) if channels % g == 0]))
        outputs = groups * draft.draw(st.integers(1, 20 // groups + 1))
        kernel = windows["kernel_shape"]
        weight = draft.weight(value.type, (outputs, channels // groups, *kernel))
        inputs = [value, weight]
        if draft.draw(st.booleans()):
            inputs.append(draft.weight(value.type, (outputs,)))
        windows["dilations"] = [
            draft.draw(st.integers(1, 2)) if (k - 1) * 2 < extent else 1
            for k, extent in zip(kernel, value.shape[2:], strict=True)
        ]
        bound = value.bound * 3 * (channels // groups) * prod(kernel) + 3
        draft.add("Conv", inputs, group=groups, bound=bound, **windows)


def conv_transpose(draft: Draft) -> None:
    if value := _image(draft):
        windows = _windows(draft, value)
        outputs = draft.draw(st.integers(1, 6))
        kernel = windows["kernel_shape"]
        weight = draft.weight(value.type, (value.shape[1], outputs, *kernel))
        bound = value.bound * 3 * value.shape[1] * prod(kernel)
        draft.add("ConvTranspose", [value, weight], bound=bound, **windows)


def pool(draft: Draft) -> None:
    if value := _image(draft):
        op = draft.draw(st.sampled_from(("MaxPool", "AveragePool", "LpPool")))
        windows = _windows(draft, value)
        if draft.draw(st.integers(0, 5)) == 0:
            windows = _larger_than_the_input(draft, value)
        if op == "AveragePool":
            windows["count_include_pad"] = draft.draw(st.integers(0, 1))
        if op != "LpPool" and _windows_begin_inside(windows):
            windows["ceil_mode"] = draft.draw(st.integers(0, 1))
        exact = value.exact and op == "MaxPool"
        draft.add(op, [value], exact=exact, bound=3 * value.bound + 1, **windows)


def _larger_than_the_input(draft: Draft, value: Value) -> dict[str, Any]:
    """Windows that fit with their padding alone."""
    kernel = [extent + draft.draw(st.integers(1, 40)) for extent in value.shape[2:]]
    return {
        "kernel_shape": kernel,
        "strides": [draft.draw(st.integers(1, k)) for k in kernel],
        "pads": [k - 1 for k in (*kernel, *kernel)],
    }


def _windows_begin_inside(windows: dict[str, Any]) -> bool:
    """Return whether no window that `ceil_mode` adds begins in the padding at the end.

    Such windows do not count, but ONNX's shape inference counts them before opset 22.
    """
    kernel, strides, pads = (windows[name] for name in ("kernel_shape", "strides", "pads"))
    dilations = windows.get("dilations", [1] * len(kernel))
    return all(
        stride + end <= (size - 1) * dilation + 1
        for size, stride, dilation, end in zip(
            kernel, strides, dilations, pads[len(kernel) :], strict=True
        )
    )


def global_pool(draft: Draft) -> None:
    if value := _image(draft):
        # ONNX's evaluator reduces two dims for a maximum, whatever the rank.
        kinds = ("GlobalAveragePool", "GlobalMaxPool")[: 2 if value.rank == 4 else 1]
        op = draft.draw(st.sampled_from(kinds))
        draft.add(op, [value], exact=value.exact and "Max" in op, bound=value.bound)


def resize(draft: Draft) -> None:
    value = draft.pick(lambda v: v.type == TensorProto.FLOAT and v.rank == 4 and v.bound <= 1000)
    if value is None or prod(value.shape) == 0:
        return
    scales = draft.constant(np.array([1, 1, 2, 2], np.float32))
    mode = draft.draw(st.sampled_from(("nearest", "linear", "cubic")))
    places = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": draft.draw(st.sampled_from(places)),
    }
    if mode == "nearest":
        rounding = ("round_prefer_floor", "floor", "ceil")
        attributes["coordinate_transformation_mode"] = "asymmetric"
        attributes["nearest_mode"] = draft.draw(st.sampled_from(rounding))
    draft.add("Resize", [value, None, scales], bound=2 * value.bound, **attributes)


def integer_matmul(draft: Draft) -> None:
    types = (TensorProto.UINT8, TensorProto.INT8)
    value = draft.pick(lambda v: v.type in types and v.rank >= 2 and prod(v.shape) > 0)
    if value:
        other = draft.weight(draft.draw(st.sampled_from(types)), (value.shape[-1], 3))
        bound = value.bound * 6 * value.shape[-1]
        draft.add("MatMulInteger", [value, other], exact=True, bound=bound)


DRAWERS = (
    matmul, gemm, conv, conv, conv_transpose, pool, pool, global_pool, resize, integer_matmul,
)  # fmt: skip
