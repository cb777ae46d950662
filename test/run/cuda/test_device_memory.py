"""Inputs and results that are memory of the GPU already are used where they are."""

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from time import monotonic, sleep

import numpy as np
import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.run.cuda.test_failures import MODEL

KEPT = "VIOLATION # the end of a thread: 1 contexts are pushed and never popped"


class Context:
    """Memory of the GPU that another package has, by the same driver."""

    def __init__(self, driver: Driver) -> None:
        self._cuda = ctypes.CDLL(str(driver.library))
        handle = ctypes.c_void_p()
        assert self._cuda.cuInit(0) == 0
        assert self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0) == 0
        assert self._cuda.cuCtxPushCurrent_v2(handle) == 0
        self._owned: list[ctypes.c_uint64] = []

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return an array in GPU memory, which only the GPU may touch."""
        address = ctypes.c_uint64()
        assert self._cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes)) == 0
        self._owned.append(address)
        source = ctypes.c_void_p(values.ctypes.data)
        assert self._cuda.cuMemcpyHtoD_v2(address, source, ctypes.c_size_t(values.nbytes)) == 0
        memory = (ctypes.c_char * values.nbytes).from_address(address.value)
        return np.frombuffer(memory, values.dtype).reshape(values.shape)

    def values(self, array: np.ndarray) -> np.ndarray:
        """Return the values in memory."""
        found = np.empty(array.shape, array.dtype)
        target, source = ctypes.c_void_p(found.ctypes.data), ctypes.c_uint64(array.ctypes.data)
        assert self._cuda.cuMemcpyDtoH_v2(target, source, ctypes.c_size_t(found.nbytes)) == 0
        return found

    def close(self, pops: bool = True) -> None:
        """Free all memory."""
        for address in self._owned:
            assert self._cuda.cuMemFree_v2(address) == 0
        if pops:
            assert self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
        assert self._cuda.cuDevicePrimaryCtxRelease_v2(0) == 0


def test_nothing_is_copied(driver: Driver) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 64), (64, 32)))
    model = braid.compile(parse_mlir(make_context(), MODEL, "m.mlir").module, target=TARGET)
    expected = model(x, w)
    context = Context(driver)
    arrays = [context.array(x), context.array(w)]
    result = context.array(np.zeros((8, 32), np.float32))
    before = driver.calls()
    for _ in range(3):
        model.run(arrays, [result])
    between = driver.calls()[len(before) :]
    assert not {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"} & set(between)
    # The addresses are the same: one more graph, which is launched again.
    assert between.count("cuGraphInstantiateWithFlags") == 1
    assert between.count("cuGraphLaunch") == 3
    np.testing.assert_array_equal(context.values(result), expected)
    del model
    gc.collect()
    context.close()
    driver.check()


def test_a_thread_that_keeps_a_context(driver: Driver) -> None:
    """The stand-in finds it where the thread ends, whatever other threads do."""
    for pops in (True, False):
        driver.forget()
        thread = Thread(target=lambda pops=pops: Context(driver).close(pops))
        thread.start()
        thread.join()
        # `join` waits for Python's thread, not the system's.
        until = monotonic() + 30
        while "# the end of a thread" not in driver.log.read_text() and monotonic() < until:
            sleep(0.01)
        ctypes.CDLL(str(driver.library)).cuInit(0)  # has the lock behind it
        assert driver.violations() == ([] if pops else [KEPT])


def test_models_of_several_threads(driver: Driver) -> None:
    """Others call each of them at once, and it ends by itself."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 64), (64, 32)))
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    models = [braid.compile(module, target=TARGET) for _ in range(2)]
    expected = models[0](x, w)

    def call(number: int) -> list[np.ndarray]:
        return [models[number % 2](x, w) for _ in range(3)]

    with ThreadPoolExecutor(6) as pool:
        for results in pool.map(call, range(6)):
            np.testing.assert_array_equal(results, [expected] * 3)
    models.pop()
    gc.collect()
    with pytest.raises(AssertionError, match="a model is still open"):
        driver.check()
    models.clear()
    gc.collect()
    driver.check()
