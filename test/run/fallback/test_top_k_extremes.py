"""The first elements where the first of all is the least or the largest that its type has."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block

import braid
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.sorting import TopKOp
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context


@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "float32", "float64"])
def test_extremes_come_first(dtype: str, largest: str) -> None:
    if dtype.startswith("float"):
        ends = [np.nan, np.inf, -np.inf, -0.0]
    else:
        ends = [np.iinfo(dtype).max, np.iinfo(dtype).min]
    for first in ends:
        x = np.array([first, *ends, 1, 0, first], dtype)
        element, count = from_numpy(x.dtype), len(x)
        text = f"""
        func.func @main(%x: tensor<{count}x{element}>)
            -> (tensor<{count}x{element}>, tensor<{count}xi64>) {{
          %0, %1 = braid.top_k %x {{k = {count} : i64, dim = 0 : i64, largest = {largest}}}
            : (tensor<{count}x{element}>) -> (tensor<{count}x{element}>, tensor<{count}xi64>)
          func.return %0, %1 : tensor<{count}x{element}>, tensor<{count}xi64>
        }}"""
        model = braid.compile(parse_mlir(make_context(), text, "top.mlir").module, jobs=1)
        values, indices = model(x)
        block = Block(arg_types=[TensorType(element, x.shape)])
        op = TopKOp.get(block.args[0], count, 0, largest=largest == "true")
        expected = op.evaluate(x)
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(indices, expected[1])
