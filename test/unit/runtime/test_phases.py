"""The C side of models whose data decide sizes: descriptions that are wrong, and wrong calls."""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

import braid
from braid.runtime.executors import NativeExecutor
from braid.runtime.model import Model
from braid.runtime.native import NativeModel
from braid.runtime.native_abi import CDevice, CModel, last_error, load_library
from braid.support.errors import BraidError


class CPhase(ctypes.Structure):
    """`braid_phase_v1`."""

    _fields_ = (("model", c_void_p), ("inputs", POINTER(c_int64)), ("outputs", POINTER(c_int64)))


class CPhases(ctypes.Structure):
    """`braid_phases_v1`."""

    _fields_ = (
        ("count", c_int64),
        ("phases", POINTER(CPhase)),
        ("value_count", c_int64),
        ("outputs", POINTER(c_int64)),
    )


TEXT = """<ir_version: 9, opset_import: ["" : 18]> g (float[N,2] x) => (int64[] y, float[] z) {
  y = NonZero (x)  z = Exp (x) }"""


@cache
def model() -> Model:
    return braid.compile(onnx.parser.parse_model(TEXT))


def native(of: Model) -> NativeModel:
    executor = of._open().executor  # pyright: ignore[reportPrivateUsage]
    assert isinstance(executor, NativeExecutor)
    return executor._model  # pyright: ignore[reportPrivateUsage]


class Parts:
    """A copy of a description that can be changed, of the second phase too."""

    devices: Any = None

    def __init__(self) -> None:
        described = native(model()).descriptor
        self.whole = CModel.from_buffer_copy(described)
        assert described.phases is not None
        self.phases = CPhases.from_buffer_copy(CPhases.from_address(described.phases))
        self.list = (CPhase * self.phases.count)(*self.phases.phases[: self.phases.count])
        self.second = CModel.from_buffer_copy(CModel.from_address(self.list[1].model))
        self.inputs = (c_int64 * self.second.input_count)(
            *self.list[1].inputs[: self.second.input_count]
        )
        self.written = (c_int64 * self.second.output_count)(
            *self.list[1].outputs[: self.second.output_count]
        )
        self.outputs = (c_int64 * 2)(*self.phases.outputs[:2])
        self.list[1].model = ctypes.addressof(self.second)
        self.list[1].inputs, self.list[1].outputs = self.inputs, self.written
        self.phases.phases, self.phases.outputs = self.list, self.outputs
        self.whole.phases = ctypes.addressof(self.phases)

    def load(self) -> NativeModel:
        return NativeModel.from_descriptor(ctypes.addressof(self.whole), None, self)


def change(part: str, name: str | int, value: Any) -> Callable[[Parts], None]:
    def changed(parts: Parts) -> None:
        target = getattr(parts, part)
        if isinstance(name, int):
            target[name] = value
        else:
            setattr(target, name, value)

    return changed


def nest(parts: Parts) -> None:
    parts.second.phases = parts.whole.phases


def add_device(parts: Parts) -> None:
    """Give a phase a device that the whole model has not."""
    parts.devices = (CDevice * 1)(CDevice(b"cpu:0", b"cpu"))
    parts.second.devices, parts.second.device_count = parts.devices, 1


def add_function(parts: Parts) -> None:
    parts.second.function_count = 1


def test_a_copy_runs() -> None:
    x = np.array([[0, 2], [3, 0]], np.float32)
    y, z = Parts().load().context().run([x])
    np.testing.assert_array_equal(y, np.stack(np.nonzero(x)))
    np.testing.assert_allclose(z, np.exp(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (change("phases", "count", 0), "number of phases 0"),
        (change("phases", "count", -1), "number of phases -1"),
        (change("phases", "value_count", 0), "number of phases 2"),
        (change("phases", "value_count", 2), "phase"),
        (change("phases", "outputs", None), "number of phases 2"),
        (change("inputs", 0, -1), "phase 1"),
        (change("inputs", 0, 1 << 40), "phase 1"),
        (change("written", 0, 0), "phase 1"),
        (change("outputs", 0, -1), "value of output 0"),
        (change("second", "abi_version", 1), "phase 1"),
        (change("second", "weights_bytes", 1 << 40), "phase 1"),
        (change("second", "counter_count", 1), "phase 1"),
        (change("whole", "arena_bytes", 64), "kind of a model with phases"),
        (nest, "phase 1"),
        (add_device, "phase 1"),
        (add_function, "phase 1"),
    ],
)
def test_damaged_descriptions(wrong: Callable[[Parts], None], message: str) -> None:
    parts = Parts()
    wrong(parts)
    with pytest.raises(BraidError, match=f"malformed: {message}|ABI version"):
        parts.load()


def test_results_belong_to_the_context() -> None:
    library, own = load_library(), native(model())
    context: int = library.braid_context_create(own.handle, 1)
    assert library.braid_context_output(context, 0) is None
    assert "known after a run" in last_error().message
    assert not library.braid_context_output_shape(context, 0)
    x = np.ones((3, 2), np.float32)
    given = (c_void_p * 1)(x.ctypes.data)
    assert library.braid_context_run(context, given, None) == 1
    assert "dim 0 is open; set its shape" in last_error().message
    assert library.braid_context_set_input_shape(context, 0, (c_int64 * 2)(3, 2)) == 0
    assert library.braid_context_run(context, given, given) == 1
    assert "outputs is NULL" in last_error().message
    assert library.braid_context_run(context, (c_void_p * 1)(None), None) == 1
    assert "the buffer for input 'x' is NULL" in last_error().message
    assert library.braid_context_run(context, given, None) == 0
    assert library.braid_context_output_shape(context, 0)[:2] == [2, 6]
    assert library.braid_context_output(context, 0) is not None
    assert library.braid_context_output(context, 2) is None
    assert "there is no output 2" in last_error().message
    library.braid_context_trim(context)
    assert library.braid_context_output(context, 0) is None
    library.braid_context_close(context)


def test_outputs_of_other_models_are_their_callers() -> None:
    text = TEXT.replace("y = NonZero (x)", "y = Cast <to = 7> (x)")
    library, own = load_library(), native(braid.compile(onnx.parser.parse_model(text)))
    context: int = library.braid_context_create(own.handle, 1)
    assert library.braid_context_output(context, 0) is None
    assert "the buffers that they are given" in last_error().message
    library.braid_context_close(context)
