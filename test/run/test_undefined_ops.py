"""Undefined behaviour of upstream ops neither reads outside of a tensor nor ends the process."""

import numpy as np
import pytest

import braid
from braid.support.errors import BraidError

NUMBER = """
  %zero = arith.constant 0 : index
  %n = tensor.extract %m[%zero] : tensor<2xi64>
  %i = arith.index_cast %n : i64 to index
"""
TO_TENSOR = "\n  %y = tensor.from_elements %e, %e : tensor<2xi64>"
EXTRACT = f"{NUMBER}%e = tensor.extract %m[%i] : tensor<2xi64>{TO_TENSOR}"
BODY = """
  %a = tensor.empty() : tensor<2xi64>
  %y = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} ins(%m : tensor<2xi64>) outs(%a : tensor<2xi64>) {{
  ^bb0(%p: i64, %q: i64):
    {}
    linalg.yield %e : i64
  }} -> tensor<2xi64>
"""
LOOP = """
  %y = scf.for %k = {} to {} step {} iter_args(%a = %m) -> (tensor<2xi64>) {{
    %b = braid.add %a, %m : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    scf.yield %b : tensor<2xi64>
  }}
"""
LEAST, MOST = -(2**63), 2**63 - 1


def text(body: str) -> bytes:
    kind = "tensor<2xi64>"
    return f"func.func @main(%m: {kind}) -> {kind} {{\n{body}\nreturn %y : {kind}\n}}".encode()


def divided(op: str) -> str:
    return f"{NUMBER}%seven = arith.constant 7 : i64\n%e = arith.{op} %seven, %n : i64{TO_TENSOR}"


DEFINED = [
    (EXTRACT, {0: 0, 1: 5, 2: 5, -1: 5, MOST: 5, LEAST: 5}),
    (
        BODY.format(
            "%j = arith.index_cast %p : i64 to index\n%e = tensor.extract %m[%j] : tensor<2xi64>"
        ),
        {0: 0, 1: 5, 2: 5, -1: 5, LEAST: 5},
    ),
    (divided("divsi"), {2: 3, 0: 7, -1: -7}),
    (divided("remui"), {4: 3, 0: 0}),
    (divided("ceildivsi"), {2: 4, 0: 7}),
    (
        f"{NUMBER}%c = arith.constant -1 : i64\n%e = arith.divsi %n, %c : i64{TO_TENSOR}",
        {3: -3, LEAST: LEAST},
    ),
    (
        BODY.format("%c = arith.constant 7 : i64\n%e = arith.ceildivsi %c, %p : i64"),
        {2: 4, 0: 7},
    ),
    (
        f"{NUMBER}%end = arith.constant 4 : index\n{LOOP.format('%zero', '%end', '%i')}",
        {1: 5, 3: 9, 0: 0, -1: -1, LEAST: LEAST},
    ),
    (
        f"{NUMBER}%end = arith.constant {MOST} : index\n"
        f"%by = arith.constant {2**62} : index\n{LOOP.format('%zero', '%end', '%by')}",
        {1: 3},
    ),
]


@pytest.mark.parametrize(("body", "expected"), DEFINED)
def test_operands_known_at_run_time_are_made_defined(body: str, expected: dict[int, int]) -> None:
    model = braid.compile(text(body), cache=False, jobs=1)
    for given, value in expected.items():
        assert int(np.asarray(model(np.array([given, 5], np.int64)))[0]) == value, given


REFUSED = {
    "index 2 of tensor<2xi64>, expected 0 to 1": (
        f"%two = arith.constant 2 : index\n%e = tensor.extract %m[%two] : tensor<2xi64>{TO_TENSOR}"
    ),
    "'tensor.extract_slice' op is not within its tensors": (
        "%far = arith.constant 1000000 : index\n"
        "%y = tensor.extract_slice %m[%far] [2] [1] : tensor<2xi64> to tensor<2xi64>"
    ),
    "'tensor.insert_slice' op is not within its tensors": (
        "%far = arith.constant 1000000 : index\n"
        "%y = tensor.insert_slice %m into %m[%far] [2] [1] : tensor<2xi64> into tensor<2xi64>"
    ),
    "'tensor.pad' op is not within its tensors": (
        "%c = arith.constant 0 : i64\n"
        "%y = tensor.pad %m low[-1] high[1] {\n^bb0(%i: index):\n tensor.yield %c : i64\n"
        "} : tensor<2xi64> to tensor<2xi64>"
    ),
    "a step of 0, expected a positive number": (
        "%zero = arith.constant 0 : index\n%end = arith.constant 4 : index\n"
        + LOOP.format("%zero", "%end", "%zero")
    ),
    "'memref.alloc' cannot be part of a program": (
        '%b = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4xi64>'
        f'{NUMBER}%e = "memref.load"(%b, %i) : (memref<4xi64>, index) -> i64{TO_TENSOR}'
    ),
    "'llvm.inttoptr' cannot be part of a program": (
        f'{NUMBER}%p = "llvm.inttoptr"(%n) : (i64) -> !llvm.ptr\n'
        f'%e = "llvm.load"(%p) <{{ordering = 0 : i64}}> : (!llvm.ptr) -> i64{TO_TENSOR}'
    ),
    "'llvm.inttoptr' cannot be part of the body of 'linalg.generic'": BODY.format(
        '%r = "llvm.inttoptr"(%p) : (i64) -> !llvm.ptr\n'
        '%e = "llvm.load"(%r) <{ordering = 0 : i64}> : (!llvm.ptr) -> i64'
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_undefined_constants_are_rejected(message: str) -> None:
    with pytest.raises(BraidError) as caught:
        braid.compile(text(REFUSED[message]), cache=False, jobs=1)
    assert message in str(caught.value)
