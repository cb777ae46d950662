"""The sign of a zero is the same in the interpreter and in compiled code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import braid

OPS = ("abs", "neg", "sign", "floor", "ceil", "round", "sqrt", "reciprocal", "erf")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_ops_of_one_operand(dtype: type[np.floating[Any]], tmp_path: Path) -> None:
    bits = np.dtype(dtype).itemsize * 8
    of = f"tensor<6xf{bits}>"
    lines = [f"%{op} = braid.{op} %x : ({of}) -> {of}" for op in OPS]
    path = tmp_path / "ops.mlir"
    path.write_text(
        f"func.func @main(%x: {of}) -> ({', '.join([of] * len(OPS))}) {{\n"
        + "\n".join(lines)
        + f"\nfunc.return {', '.join(f'%{op}' for op in OPS)} : {', '.join([of] * len(OPS))}\n}}\n"
    )
    x = np.array([-0.0, 0.0, -0.25, 0.25, -2.0, 2.0], dtype)
    with np.errstate(all="ignore"):
        expected = braid.interpret(path)(x)
        found = braid.compile(path)(x)
    for op, a, b in zip(OPS, expected, found, strict=True):
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=op)
