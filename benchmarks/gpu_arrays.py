"""The arrays that cases of ``benchmarks.gpu`` run on, and the references of their results.

With PyTorch and a GPU, arrays are the GPU's own, whole results are compared with PyTorch's results
in f64, and times are the device's with none of the operands in its caches. Without, arrays are
numpy's, and a share of the rows is compared.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Protocol

import numpy as np

import braid
from benchmarks import gpu_peers
from benchmarks.gpu_case import Array, Case
from braid.runtime.dtypes import numpy_dtype

SAMPLED = 16
"""Rows of a result that are compared without a GPU."""
HEADS = 4
"""Heads of attention whose scores in f64 fit into memory."""
WARM_UPS = 3
OWN = "braid"

Run = Callable[[], Any]


class Arrays(Protocol):
    """Makes, compares and times arrays of one kind."""

    def inputs(self, case: Case, model: braid.Model) -> list[Any]:
        """Random ones for a case of few ops."""
        ...

    def given(self, array: Array) -> Any:
        """One of this kind with the elements of numpy's."""
        ...

    def taken(self, array: Any) -> Array:
        """One of numpy with the elements of this kind's."""
        ...

    def results(self, model: braid.Model) -> list[Any] | None:
        """Memory for results, full of what no result is; None where a run makes it."""
        ...

    def error(self, case: Case, inputs: Sequence[Any], result: Any) -> float:
        """Return the largest error divided by the largest number."""
        ...

    def peers(self, case: Case, inputs: Sequence[Any], compiled: bool) -> dict[str, Run]:
        """Other implementations: libraries, or code `compiled` for it."""
        ...

    def seconds(
        self, model: braid.Model, run: Run, peers: Mapping[str, Run], runs: int
    ) -> dict[str, list[float]]:
        """Return the times of runs of the model, and of peers in turn with them."""
        ...


def random_inputs(case: Case, model: braid.Model) -> list[Array]:
    """Random arrays like those of networks; indices are indices of rows."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for number, spec in enumerate(model.inputs):
        shape, dtype = spec.shape, numpy_dtype(spec.dtype)
        if number == case.indices:
            found.append(rng.integers(0, case.shapes[0][0], shape).astype(dtype))
        elif dtype.kind == "i":
            low = 0 if case.make else -8
            found.append(rng.integers(low, 8, shape).astype(dtype))
        else:
            found.append(rng.standard_normal(shape, np.float32).astype(dtype))
    return found


def launched_seconds(model: braid.Model) -> float:
    """Return the seconds that all runs so far have taken, by the model's devices."""
    return sum(model.launched_seconds().values())


def clock_seconds(run: Run) -> float:
    """Return the seconds that a run takes by the clock."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def largest_error(found: Array, expected: Array) -> float:
    """Return the largest difference divided by the largest expected number."""
    difference = np.abs(found.astype(np.float64) - expected).max(initial=0.0)
    return float(difference / max(np.abs(expected).max(initial=0.0), 1e-30))


class HostArrays:
    """In numpy."""

    def inputs(self, case: Case, model: braid.Model) -> list[Any]:
        """Random ones."""
        return random_inputs(case, model)

    def given(self, array: Array) -> Any:
        """Return the array as it is."""
        return array

    def results(self, model: braid.Model) -> None:
        """None: a run makes them."""

    def taken(self, array: Any) -> Array:
        """Return the array as it is."""
        return array

    def error(self, case: Case, inputs: Sequence[Any], result: Any) -> float:
        """Of a share of the rows."""
        assert case.expected is not None
        count = min(len(result), case.sampled or SAMPLED)
        rows = np.unique(np.linspace(0, len(result) - 1, count).astype(int))
        return largest_error(result[rows], case.expected(inputs, rows))

    def peers(self, case: Case, inputs: Sequence[Any], compiled: bool) -> dict[str, Run]:
        """None."""
        return {}

    def seconds(
        self, model: braid.Model, run: Run, peers: Mapping[str, Run], runs: int
    ) -> dict[str, list[float]]:
        """By the account of the model's devices if they keep one."""
        found: list[float] = []
        for _ in range(runs):
            before, clock = launched_seconds(model), clock_seconds(run)
            found.append(launched_seconds(model) - before or clock)
        return {OWN: found}


class GpuArrays:
    """In PyTorch, on the GPU."""

    FLUSHED = 1 << 30
    """Bytes written and read before each timed run: none of the operands stay in caches, nor lines
    that must go to memory first."""
    WAITED = 1 << 22
    """Cycles that the GPU then waits, some 2 ms: what the host has to do for the run, it has done
    by then, so that no launch is late."""

    def __init__(self, exact: bool) -> None:
        """Take PyTorch, whose products of f32 are `exact` or of tf32."""
        self._torch = gpu_peers.import_torch(exact)
        self._generator = self._torch.Generator("cuda").manual_seed(0)
        self._flushed: Any = None

    def inputs(self, case: Case, model: braid.Model) -> list[Any]:
        """Random ones for a case of few ops, as `random_inputs` makes them."""
        torch, made = self._torch, list[Any]()
        for number, spec in enumerate(model.inputs):
            shape, dtype = spec.shape, gpu_peers.dtype_of(torch, spec.dtype)
            if number == case.indices:
                one = self._integers(0, case.shapes[0][0], shape)
            elif not dtype.is_floating_point:
                one = self._integers(-8, 8, shape)
            else:
                one = torch.randn(shape, generator=self._generator, device="cuda")
            made.append(one.to(dtype))
        return made

    def _integers(self, low: int, high: int, shape: Sequence[int]) -> Any:
        return self._torch.randint(low, high, shape, generator=self._generator, device="cuda")

    def given(self, array: Array) -> Any:
        """Return a copy on the GPU."""
        return self._torch.from_numpy(array).cuda()

    def results(self, model: braid.Model) -> list[Any]:
        """Memory for results, full of what no result is."""
        torch = self._torch
        made = list[Any]()
        for spec in model.outputs:
            dtype = gpu_peers.dtype_of(torch, spec.dtype)
            one = torch.empty(spec.shape, dtype=dtype, device="cuda")
            made.append(one.fill_(float("nan") if dtype.is_floating_point else 77))
        return made

    def taken(self, array: Any) -> Array:
        """Return a copy in numpy."""
        return array.cpu().numpy()

    def error(self, case: Case, inputs: Sequence[Any], result: Any) -> float:
        """For the whole result; for attention, for some heads."""
        torch = self._torch
        known = gpu_peers.function_of(torch, case.kind)
        assert known is not None
        if case.kind == "attention":
            inputs, result = [one[:HEADS] for one in inputs], result[:HEADS]
        wide = [
            one if number == case.indices else one.double() for number, one in enumerate(inputs)
        ]
        expected = known[1](*wide).reshape(result.shape)
        difference = (result.double() - expected).abs().max()
        return float(difference / expected.abs().max().clamp_min(1e-30))

    def peers(self, case: Case, inputs: Sequence[Any], compiled: bool) -> dict[str, Run]:
        """PyTorch's operators, or what ``torch.compile`` makes."""
        if case.make is not None:
            return gpu_peers.model_runs(self._torch, case) if compiled else {}
        if compiled:
            return gpu_peers.compiled_runs(self._torch, case.kind, inputs)
        return {
            **gpu_peers.library_runs(self._torch, case.kind, inputs),
            **gpu_peers.copy_runs(self._torch, case.moved),
        }

    def seconds(
        self, model: braid.Model, run: Run, peers: Mapping[str, Run], runs: int
    ) -> dict[str, list[float]]:
        """Return the times of the model by its devices' account, of peers by events."""
        found: dict[str, list[float]] = {OWN: [], **{name: [] for name in peers}}
        for turn in range(-WARM_UPS, runs):
            for name in found:
                self._flush()
                taken = self._of_peer(peers[name]) if name in peers else _of_model(model, run)
                if turn >= 0:
                    found[name].append(taken)
        return found

    def copy_bandwidth(self, size: int = 1 << 28) -> float:
        """Bytes read and written a second by the driver's copy of `size` bytes."""
        torch = self._torch
        source, target = (torch.ones(size, dtype=torch.uint8, device="cuda") for _ in range(2))
        times = [self._of_peer(lambda: target.copy_(source)) for _ in range(20)]
        return 2 * size / median(times)

    def _flush(self) -> None:
        if self._flushed is None:
            dtype = self._torch.int32
            self._flushed = self._torch.empty(self.FLUSHED // 4, dtype=dtype, device="cuda")
        self._flushed.zero_()
        self._flushed.max()
        self._torch.cuda._sleep(self.WAITED)

    def _of_peer(self, run: Run) -> float:
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3


def _of_model(model: braid.Model, run: Run) -> float:
    before = launched_seconds(model)
    run()
    return launched_seconds(model) - before
