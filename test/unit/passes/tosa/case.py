"""An op of TOSA, what it computes by the specification, and a module of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CONSTANTS = {
    "%z": "dense<0.0> : tensor<1xf32>",
    "%z8": "dense<0> : tensor<1xi8>",
    "%three8": "dense<3> : tensor<1xi8>",
    "%z32": "dense<0> : tensor<1xi32>",
}


class Case(NamedTuple):
    """An op (or more, the last named %y) on %a, %b, …; `shapes` are the types of these."""

    lines: str
    types: str
    result: str
    expected: Callable[..., Array]


def shape(name: str, *extents: int) -> str:
    """Return a line that defines a list of extents."""
    values = f"dense<{list(extents)}> : tensor<{len(extents)}xindex>"
    type = f"!tosa.shape<{len(extents)}>"
    return f"{name} = tosa.const_shape {{values = {values}}} : () -> {type}\n"


def module_of(case: Case) -> str:
    """Return a module with the case as its only function, in TOSA's custom syntax."""
    arguments = [
        f"%{name}: tensor<{t}>" for name, t in zip("abc", case.types.split(), strict=False)
    ]
    lines = [
        f'{name} = "tosa.const"() <{{values = {value}}}> : () -> {value.partition(" : ")[2]}'
        for name, value in CONSTANTS.items()
        if f"{name}," in case.lines or f"{name} " in case.lines
    ]
    return (
        f"func.func @main({', '.join(arguments)}) -> tensor<{case.result}> {{\n"
        + "\n".join([*lines, case.lines])
        + f"\nreturn %y : tensor<{case.result}>\n}}\n"
    )


def random_inputs(types: str) -> list[Array]:
    """Positive floats and small integers, none of them 0."""
    random = np.random.default_rng(0)
    arrays: list[Array] = []
    for type in types.split():
        *extents, element = type.split("x")
        dims = [int(extent) for extent in extents]
        match element:
            case "f32":
                arrays.append(random.uniform(0.1, 4.0, dims).astype(np.float32))
            case "i1":
                arrays.append(random.integers(0, 2, dims).astype(np.bool_))
            case _:
                arrays.append(random.integers(1, 9, dims).astype(f"int{element[1:]}"))
    return arrays
