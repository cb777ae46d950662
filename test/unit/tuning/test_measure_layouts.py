"""Kernels are timed in a process of their own, and the times are found again."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp

from braid.dialects.braid.elementwise import elementwise
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.host.codegen.compiler import compile_kernel
from braid.passes.outlining.outline_kernels import in_group_of_its_own
from braid.support.records.record_store import default_store
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_records import append_records, load_records
from braid.targets.costs.device_costs import DeviceCosts
from braid.tuning.layout_candidates import in_layouts, layout_candidates
from braid.tuning.measure_layouts import measure_layouts
from braid.tuning.timing import TimingRequest, time_kernel
from braid.tuning.timing_worker import timing_worker
from test.machines import HOST

FAMILIES = (ElementwiseFamily(HOST), MovementFamily(HOST))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    return default_store()


def model(*shapes):
    """Return a function that negates tensors, each in a group of its own."""
    types = [TensorType(f32, shape) for shape in shapes]
    function = FuncOp("main", FunctionType.from_lists(types, types))
    block = function.body.block
    ops = [elementwise("neg", argument) for argument in block.args]
    block.add_ops([*ops, ReturnOp(*(op.results[0] for op in ops))])
    module = ModuleOp([function])
    for op in ops:
        in_group_of_its_own(op)
    return module


def request_of(candidate, **options):
    kernel = candidate.kernel("kernel")
    count = int(np.prod(candidate.group.outputs[0].type.get_shape()))
    arguments = (("<f4", count), ("<f4", count))
    code = compile_kernel(kernel)
    return TimingRequest(code, "kernel", kernel.grid, kernel.scratch_bytes, arguments, **options)


def test_a_tiny_model_is_measured_once(cache) -> None:
    module = model((1, 16, 4, 4), (1, 16, 4, 4))
    report = measure_layouts(module, FAMILIES, time_limit=600, jobs=1)
    # Row-major, channels last, blocks of 8 and 16; and the reorders between any two of the four.
    assert (report.measured, report.failed, report.left, report.known) == (4 + 12, 0, 0, 0)
    records = cache.read("cost").values()
    assert len(records) == 16
    assert all(record["seconds"] > 0 and record["what"] for record in records)
    again = measure_layouts(module, FAMILIES, time_limit=60)
    assert (again.measured, again.known) == (0, 16)
    [group, *_] = [candidates[0].group for candidates in layout_candidates(module, FAMILIES)]
    assert all(
        option.source is Source.MEASURED
        for option in DeviceCosts.of_families(FAMILIES).kernels.options(group)
    )


def test_a_group_is_measured_whole_or_not_at_all(cache) -> None:
    module = model((1, 16, 4, 4), (1, 16, 40, 40))
    ticks = iter([0.0, 0.0, 2.0, 2.0, 2.0, 2.0])
    report = measure_layouts(module, FAMILIES, 1.0, jobs=1, clock=lambda: next(ticks))
    assert (report.measured, report.left) == (12, 4 + 4 + 12)
    measured = " ".join(record["what"] for record in cache.read("cost").values())
    assert "16x40x40" in measured and "16x4x4" not in measured


def test_candidates_compute_the_same_in_every_layout() -> None:
    [candidates, _] = layout_candidates(model((1, 16, 2, 3)), FAMILIES)
    array = np.arange(96, dtype=np.float32)
    for candidate in candidates:
        group = in_layouts(candidate.group, candidate.choice)
        assert tuple(v.type for v in group.inputs) == tuple(v.type for v in group.outputs)
        out = np.zeros_like(array)
        CallableKernel(candidate.kernel("kernel"))(array, out)
        np.testing.assert_array_equal(out, -array)


def test_the_first_quartile_of_a_fake_clock() -> None:
    [candidates, _] = layout_candidates(model((1, 16, 2, 3)), FAMILIES)
    # The first reading starts the budget; then start and end of a run, and a look at the budget.
    ticks = iter([0.0, 0.0, 5.0, 5.0, 6.0, 6.0, 9.0, 9.0])
    assert time_kernel(request_of(candidates[0], cold=False), lambda: next(ticks)) == 1.0


def test_a_crash_costs_one_measurement() -> None:
    [candidates, _] = layout_candidates(model((1, 16, 2, 3)), FAMILIES)
    good = request_of(candidates[0])
    bad = TimingRequest(b"no object", "kernel", 1, 0, good.arguments)
    with timing_worker() as worker:
        assert worker.seconds(bad) is None
        seconds = worker.seconds(good)
    assert seconds is not None and seconds > 0


def test_writers_do_not_cut_each_other_off(cache) -> None:
    def write(number: int) -> None:
        append_records({f"{number}-{i}": float(i) for i in range(50)}, {f"{number}-0": "x" * 3000})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(load_records(cache)) == 400
