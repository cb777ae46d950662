"""The C side of code for some sizes: which code runs, and descriptions that are wrong."""

import ctypes
import threading
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
from braid.runtime.native_abi import CModel
from braid.support.errors import BraidError


class CSpecialization(ctypes.Structure):
    """`braid_specialization_v1`."""

    _fields_ = (("sizes", POINTER(c_int64)), ("model", c_void_p))


TEXT = """<ir_version: 9, opset_import: ["" : 18]>
g (float[B,H,P,64] past, float[B,H,T,64] x) => (float[B,H,N,64] present, float[B,H,T,N] y) {
  present = Concat <axis = 2> (past, x)
  keys = Transpose <perm = [0, 1, 3, 2]> (present)  y = MatMul (x, keys) }"""
RANDOM = np.random.default_rng(2)


@cache
def model() -> Model:
    proto = onnx.parser.parse_model(TEXT)
    return braid.compile(proto, state={"past": "present"}, profile=True)


def native() -> NativeModel:
    return native_of(model())


def native_of(compiled: Model) -> NativeModel:
    executor = compiled._open().executor  # pyright: ignore[reportPrivateUsage]
    assert isinstance(executor, NativeExecutor)
    return executor._model  # pyright: ignore[reportPrivateUsage]


def given(batch: int, past: int, new: int) -> list[np.ndarray]:
    shapes = [(past, batch, 2, 64), (batch, 2, new, 64)]
    return [RANDOM.standard_normal(shape).astype(np.float32) for shape in shapes]


def check(context: Any, batch: int, past: int, new: int) -> None:
    before, x = given(batch, past, new)
    whole = np.concatenate([before, x.transpose(2, 0, 1, 3)])
    present, y = context.run([before, x])
    np.testing.assert_array_equal(present, whole)
    np.testing.assert_allclose(y, x @ whole.transpose(1, 2, 3, 0), rtol=1e-4, atol=1e-4)


class Parts:
    """A copy of a description that can be changed, of the specialization too."""

    def __init__(self) -> None:
        address = ctypes.addressof(native().descriptor)
        self.whole = CModel.from_buffer_copy(CModel.from_address(address))
        self.special = CSpecialization.from_buffer_copy(
            CSpecialization.from_address(self.whole.specializations)
        )
        self.own = CModel.from_buffer_copy(CModel.from_address(self.special.model))
        count = self.whole.dim_count
        self.sizes = (c_int64 * count)(*self.special.sizes[:count])
        self.special.sizes, self.special.model = self.sizes, ctypes.addressof(self.own)
        self.whole.specializations = ctypes.addressof(self.special)

    def load(self) -> NativeModel:
        return NativeModel.from_descriptor(ctypes.addressof(self.whole), None, self)


def test_the_first_that_fits_runs() -> None:
    context, names = Parts().load().context(), [dim.name for dim in native().dims]
    assert Parts().sizes[names.index("T")] == 1
    for batch, past, new in ((1, 5, 1), (1, 5, 2), (2, 9, 1), (1, 0, 1), (1, 0, 3), (2, 9, 1)):
        check(context, batch, past, new)
    layouts = set(context.profile()["y"].layouts)
    assert any("dabc" in layout for layout in layouts) and len(layouts) == 2
    context.trim()
    check(context, 3, 2, 1)


def test_contexts_of_threads() -> None:
    loaded, failures = Parts().load(), list[BaseException]()

    def run(batch: int) -> None:
        try:
            context = loaded.context()
            for past in range(40):
                check(context, batch, past, 1 + past % 2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(batch,)) for batch in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def change(part: str, name: str | int, value: Any) -> Callable[[Parts], None]:
    def changed(parts: Parts) -> None:
        target = getattr(parts, part)
        if isinstance(name, int):
            target[name] = value
        else:
            setattr(target, name, value)

    return changed


def nest(parts: Parts) -> None:
    parts.special.model = ctypes.addressof(parts.whole)


@pytest.mark.parametrize(
    "wrong",
    [
        change("whole", "specialization_count", -1),
        change("whole", "specialization_count", 1 << 40),
        change("whole", "specializations", None),
        change("special", "sizes", None),
        change("special", "model", None),
        change("sizes", 0, -2),
        change("own", "abi_version", 1),
        change("own", "run", None),
        change("own", "input_count", 1),
        change("own", "outputs", None),
        change("own", "weights_bytes", 1 << 40),
        change("own", "counter_count", 0),
        nest,
    ],
)
def test_damaged_descriptions(wrong: Callable[[Parts], None]) -> None:
    parts = Parts()
    wrong(parts)
    with pytest.raises(BraidError, match=r"malformed: specialization 0|ABI version"):
        parts.load()


def test_sizes_that_code_for_a_step_refuses_have_no_shapes() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[B,P,4] past, float[B,T,4] x, float[B,M,4] z) => (float[B,N,4] present, float[B,N,4] y)
    { present = Concat <axis = 1> (past, x)  y = Add (present, z) }"""
    compiled = braid.compile(onnx.parser.parse_model(text), state={"past": "present"})
    context = native_of(compiled).context()
    good = [np.zeros(shape, np.float32) for shape in ((1, 2, 4), (2, 1, 4), (2, 2, 4))]
    bad = [*good[:2], np.zeros((2, 3, 4), np.float32)]
    assert context.shapes_for(good) == [(2, 2, 4), (2, 2, 4)]
    for _ in range(2):  # not even the second time
        with pytest.raises(BraidError, match=r"needs P \+ 1 = M"):
            context.shapes_for(bad)
    assert context.shapes_for(good) == [(2, 2, 4), (2, 2, 4)]


def test_wrong_shapes() -> None:
    context = Parts().load().context()
    past, x = given(2, 3, 1)
    with pytest.raises(BraidError, match="dim 'H' is 1 in input 'x', and 2 in an input before it"):
        context.run([past, x[:, :1]])
    with pytest.raises(BraidError, match="dim 'B' is 1 in input 'x'"):
        context.run([past, x[:1]])
    check(context, 2, 3, 1)
