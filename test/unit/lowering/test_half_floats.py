"""Conversions of floats of 16 bits need no library, on CPUs with and without instructions."""

import re
import subprocess
from ctypes import CFUNCTYPE, c_void_p

import ml_dtypes
import numpy as np
import pytest

from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.codegen.objects import emit_object
from test.machines import AVX2, AVX512, HOST, SSE

LOOP = """
func.func @kernel(%p: memref<{count}x{source}>, %q: memref<{count}x{target}>) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = arith.constant {count} : index
  scf.for %i = %0 to %n step %1 {{
    %x = memref.load %p[%i] : memref<{count}x{source}>
    {ops}
    memref.store %y, %q[%i] : memref<{count}x{target}>
  }}
  func.return
}}
"""
BY_F32 = "%wide = arith.{op} %x : {source} to f32\n%y = arith.truncf %wide : f32 to {target}"
CALL = re.compile(r"__(?:trunc|extend|float|fix)\w+")
TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def code(source: str, target: str, ops: str, count: int, machine) -> bytes:
    text = LOOP.format(source=source, target=target, ops=ops, count=count)
    return emit_object(to_llvm_ir(text, LLVM_PASSES), machine)


def converted(found: bytes, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    result = np.empty(values.shape, dtype)
    loaded = load_objects([found])
    kernel = CFUNCTYPE(None, c_void_p, c_void_p)(loaded.address("kernel"))
    kernel(values.ctypes.data, result.ctypes.data)
    return result


@pytest.mark.parametrize("machine", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize(
    ("source", "op"),
    [("i8", "sitofp"), ("i32", "uitofp"), ("i64", "sitofp"), ("f64", "truncf"), ("other", "extf")],
)
def test_nothing_is_missing(machine, source, op, target, tmp_path) -> None:
    if source == "other":
        (source,) = TYPES.keys() - {target}
    ops = BY_F32.format(op=op, source=source, target=target)
    path = tmp_path / "kernel.o"
    path.write_bytes(code(source, target, ops, 8, machine))
    symbols = subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True)
    assert not CALL.findall(symbols.stdout)


@pytest.mark.parametrize("machine", [HOST, SSE], ids=["host", "sse"])
@pytest.mark.parametrize("kind", TYPES)
def test_all_halves_and_what_lies_between(machine, kind) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(TYPES[kind])
    wide = every.astype(np.float32)
    ops = f"%y = arith.extf %x : {kind} to f32"
    found = converted(code(kind, "f32", ops, every.size, machine), every, wide.dtype)
    np.testing.assert_array_equal(found, wide)
    # Halfway to the next, just below and just above.
    steps = np.int64(1) << (12 if kind == "f16" else 15)
    bits = wide.view(np.uint32).astype(np.int64)
    near = np.stack([bits, bits + steps - 1, bits + steps, bits + steps + 1])
    values = near.astype(np.uint32).view(np.float32).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(TYPES[kind])
    ops = f"%y = arith.truncf %x : f32 to {kind}"
    found = converted(code("f32", kind, ops, values.size, machine), values, TYPES[kind])
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_several_objects_bring_the_same_functions() -> None:
    ops = "%y = arith.truncf %x : f32 to f16"
    text = LOOP.format(source="f32", target="f16", ops=ops, count=3)
    found = [
        emit_object(to_llvm_ir(text.replace("kernel", name), LLVM_PASSES), SSE)
        for name in ("kernel", "other")
    ]
    loaded = load_objects(found)
    assert loaded.address("kernel") != loaded.address("other")
