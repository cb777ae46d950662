"""Modules of one op of StableHLO, and what StableHLO's own interpreter makes of them."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.support.mlir_bindings import ir, package, register_stablehlo

Array = NDArray[Any]


def module_of(lines: str) -> str:
    """Return a function of `lines`, whose operands %a, %b, … have their types there; %y is the
    result.

    `%a: tensor<4xf32>` makes an argument; what is behind the last `->`, or the only type of a
    line, is the result's type.
    """
    arguments: dict[str, str] = dict(re.findall(r"(%[a-d]): (tensor<[^>]*>)", lines))
    body = re.sub(r"(%[a-d]): tensor<[^>]*>", r"\1", lines)
    result = re.findall(r"tensor<[^>]*>", body)[-1]
    listed = ", ".join(f"{name}: {type}" for name, type in sorted(arguments.items()))
    return f"func.func @main({listed}) -> {result} {{\n{body}\nreturn %y : {result}\n}}\n"


def inputs_of(text: str) -> list[Array]:
    """Random arguments of @main: positive floats, small integers."""
    random = np.random.default_rng(0)
    header = text[text.index("@main") : text.index("->")]
    arrays: list[Array] = []
    for type in re.findall(r"tensor<([^>]*)>", header):
        *extents, element = type.split("x")
        dims = [int(extent) for extent in extents]
        match element:
            case "f32":
                arrays.append(np.array(random.uniform(-2.0, 2.0, dims), np.float32))
            case "i1":
                arrays.append(np.array(random.integers(0, 2, dims), np.bool_))
            case _:
                dtype = element.replace("ui", "uint") if "u" in element else f"int{element[1:]}"
                arrays.append(np.array(random.integers(1, 9, dims), dtype))
    return arrays


def reference(text: str, inputs: list[Array]) -> Array:
    """Return the results of StableHLO's reference interpreter."""
    with ir.Context() as context:
        assert register_stablehlo(context)
        stablehlo: Any = __import__(f"{package()}._mlir_libs._stablehlo", fromlist=["_stablehlo"])
        module = ir.Module.parse(text)
        listed = [_dense(array) for array in inputs]
        (result,) = stablehlo.eval_module(module, listed)
        if isinstance(result, ir.DenseFPElementsAttr | ir.DenseIntElementsAttr):
            values = np.array([result[i] for i in range(len(result))])
            shape = ir.ShapedType(result.type).shape
            return values.reshape(shape)
        return np.array(result)


def _dense(array: Array) -> Any:
    if array.dtype.kind == "f":
        return ir.DenseElementsAttr.get(np.ascontiguousarray(array).reshape(array.shape))
    element = {"b": "i1", "i": "i", "u": "ui"}[array.dtype.kind]
    width = "" if array.dtype.kind == "b" else str(8 * array.dtype.itemsize)
    shape = "".join(f"{extent}x" for extent in array.shape)
    return ir.Attribute.parse(
        f"dense<{str(array.tolist()).lower()}> : tensor<{shape}{element}{width}>"
    )
