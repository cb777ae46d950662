"""A case of ``benchmarks.gpu``: a model of few ops, or a whole one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from ml_dtypes import bfloat16
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": bfloat16, "i8": np.int8}

TOP = "top "
"""The prefix of kinds of cases that select the largest elements; their number follows."""


@dataclass(frozen=True)
class Case:
    """A model of few ops, or an ONNX model; `work` is FLOPs and `moved` bytes; one of them is the
    limit.

    `expected` computes rows of the result, by default a share of them, else as many as `sampled`.
    Operand `indices` has numbers of rows of the first operand. If a part of it runs `on_host`, the
    operands of that part are there. `exact` makes a model that computes the same in f32.
    """

    kind: str
    name: str
    text: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    element: str = "f32"
    work: float = 0.0
    moved: float = 0.0
    expected: Callable[[Sequence[Array], Array], Array] | None = None
    make: Callable[[], onnx.ModelProto] | None = None
    exact: Callable[[], onnx.ModelProto] | None = None
    sampled: int = 0
    indices: int = -1
    on_host: bool = False

    def dtype(self, operand: int) -> np.dtype[Any]:
        """Of an operand."""
        return np.dtype(np.int64 if operand == self.indices else DTYPES[self.element])


def function_text(
    operands: Sequence[str], result: str, body: str, before: Sequence[str] = ()
) -> str:
    """Return a function that returns `body`, which may use the values of the lines `before`."""
    names = ", ".join(
        f'%{name}: {type} {{braid.name = "{name}"}}'
        for name, type in zip("abc", operands, strict=False)
    )
    return (
        f'func.func @main({names}) -> ({result} {{braid.name = "y"}}) {{\n'
        + "".join(f"  {line}\n" for line in before)
        + f"  %y = {body}\n  func.return %y : {result}\n}}\n"
    )
