"""A model emitted as LLVM IR, as a code generator does it: descriptor and entry in one module."""

from collections.abc import Iterator

import llvmlite.binding as llvm
import numpy as np
import pytest

from braid.runtime.native import NativeModel

# y[i] = x[i] * w[i] for four floats.
IR = """
%braid.tensor = type { ptr, i64, i64, ptr, ptr, ptr }
%braid.model = type {
    i64, i64, ptr, i64, ptr, i64, i64, i64, ptr, i64, ptr, ptr, i64, ptr, i64, ptr, i64,
    i64, ptr, i64, ptr, i64, i64, ptr, i64, ptr, ptr, i64, i64,
    ptr, ptr }

@x = private constant [2 x i8] c"x\\00"
@y = private constant [2 x i8] c"y\\00"
@shape = private constant [1 x i64] [i64 4]
@inputs = private constant [1 x %braid.tensor]
    [%braid.tensor { ptr @x, i64 1, i64 1, ptr @shape, ptr @shape, ptr null }]
@outputs = private constant [1 x %braid.tensor]
    [%braid.tensor { ptr @y, i64 1, i64 1, ptr @shape, ptr @shape, ptr null }]
@braid_model = constant %braid.model { i64 13, i64 1, ptr @inputs, i64 1, ptr @outputs,
    i64 0, i64 64, i64 0, ptr null, i64 0, ptr null, ptr @run, i64 0, ptr null, i64 0, ptr null,
    i64 16, i64 0, ptr null, i64 0, ptr null, i64 0, i64 0, ptr null, i64 0, ptr null, ptr null,
    i64 0, i64 0, ptr null, ptr null }

define i32 @run(ptr %env, ptr %inputs, ptr %outputs, ptr %weights, ptr %arena) {
  %x = load ptr, ptr %inputs
  %y = load ptr, ptr %outputs
  %a = load <4 x float>, ptr %x, align 4
  %b = load <4 x float>, ptr %weights, align 4
  %c = fmul <4 x float> %a, %b
  store <4 x float> %c, ptr %y, align 4
  ret i32 0
}
"""


@pytest.fixture
def engine() -> Iterator[llvm.ExecutionEngine]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(llvm.parse_assembly(IR), machine) as compiler:
        compiler.finalize_object()
        yield compiler


def test_jit_compiled_model(engine: llvm.ExecutionEngine) -> None:
    memory = np.zeros(128, np.uint8)
    weights = memory[-memory.ctypes.data % 64 :][:16]
    weights.view(np.float32)[:] = np.arange(4)
    address = engine.get_global_value_address("braid_model")
    model = NativeModel.from_descriptor(address, weights, engine)
    x = np.full(4, 2.0, np.float32)
    (y,) = model.context().run([x])
    np.testing.assert_array_equal(y, [0.0, 2.0, 4.0, 6.0])
