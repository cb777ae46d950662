"""Traces of runs and counters of the hardware: from C, in streams, and on devices."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import braid
from braid.runtime.native import NativeModel
from braid.runtime.native_abi import find_headers, find_library
from braid.runtime.traces import EventKind, Trace, TraceEvent, tracing_library
from braid.support.errors import BraidError

T = "tensor<64x64xf32>"
CHAIN = f"""func.func @main(%x: {T}) -> {T} {{
  %a = braid.matmul %x, %x {{braid.name = "a"}} : ({T}, {T}) -> {T}
  %b = braid.softmax %a {{dim = 1 : i64, braid.name = "b"}} : ({T}) -> {T}
  %c = braid.matmul %b, %x {{braid.name = "c"}} : ({T}, {T}) -> {T}
  func.return %c : {T}
}}"""
X = np.random.default_rng(0).standard_normal((64, 64), np.float32)
COUNTERS = {"cycles", "instructions", "cache_misses", "task_clock_ns", "page_faults"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "chain.mlir"
    path.write_text(CHAIN)
    return path


@pytest.fixture(scope="module")
def model(source: Path) -> braid.Model:
    return braid.compile(source, profile=True, threads=1)


def native(model: Any) -> NativeModel:
    return model._open().executor._model


def of_kind(trace: Trace, kind: EventKind) -> list[TraceEvent]:
    return [event for event in trace.events() if event.kind is kind]


def test_kernels_lie_in_their_run_one_after_the_other(model: braid.Model) -> None:
    with model.traced() as trace:
        model(X)
        model(X)
    runs, kernels = of_kind(trace, EventKind.RUN), of_kind(trace, EventKind.KERNEL)
    names = [event.name for event in kernels]
    assert len(runs) == 2 and len(kernels) % 2 == 0
    assert names[: len(names) // 2] == names[len(names) // 2 :]
    assert {part for name in names for part in name.split("+")} >= {"a", "b", "c"}
    for run in runs:
        own = [event for event in kernels if run.begin <= event.begin < run.end]
        assert len(own) == len(kernels) // 2 and own[-1].end <= run.end
        assert all(before.end <= after.begin for before, after in pairwise(own))
    model(X)
    assert len(of_kind(trace, EventKind.RUN)) == 2


def test_a_trace_agrees_with_the_profile(model: braid.Model) -> None:
    model.reset_profile()
    with model.traced() as trace:
        for _ in range(5):
            model(X)
    counted = {name: entry for name, entry in model.profile().items() if entry.count}
    for name, entry in counted.items():
        own = [event for event in of_kind(trace, EventKind.KERNEL) if event.name == name]
        assert len(own) == entry.count == 5
        assert sum(event.seconds for event in own) == pytest.approx(entry.seconds, abs=5e-9)


def test_threads_have_parts_with_the_names_of_kernels(source: Path) -> None:
    model = braid.compile(source, profile=True, threads=2)
    with model.traced() as trace:
        model(X)
    kernels = of_kind(trace, EventKind.KERNEL)
    parts = of_kind(trace, EventKind.PART)
    assert parts
    for part in parts:
        around = [k for k in kernels if k.begin <= part.begin and part.end <= k.end]
        assert [k.name for k in around] == [part.name]


def test_a_full_trace_counts_what_it_drops(model: braid.Model) -> None:
    with model.traced(capacity=1) as trace:
        model(X)
    assert len(trace.events()) == 1 and trace.dropped >= 2
    trace.reset()
    assert trace.events() == [] and trace.dropped == 0
    with pytest.raises(BraidError, match="from 1 to 67108864 events, not 0"), model.traced(0):
        pass


def test_files_are_trace_events(model: braid.Model, tmp_path: Path) -> None:
    with model.traced() as trace:
        model(X)
    file = tmp_path / "trace.json"
    trace.write(file)
    written = json.loads(file.read_text())
    complete = [event for event in written["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(trace.events()) and written["dropped"] == 0
    for event, known in zip(complete, trace.events(), strict=True):
        assert event["cat"] == known.kind.value
        assert event["dur"] == pytest.approx(known.seconds * 1e6, abs=2e-3)
    with pytest.raises(BraidError, match="cannot write"):
        trace.write(tmp_path / "none" / "trace.json")


def test_streams_number_their_requests(model: braid.Model) -> None:
    with model.traced() as trace:
        assert len(list(model.stream([X] * 4))) == 4
    stages = of_kind(trace, EventKind.STAGE)
    assert [event.request for event in stages] == [0, 1, 2, 3]
    assert len(of_kind(trace, EventKind.RUN)) == 4


@pytest.mark.parametrize("streamed", [False, True])
def test_launches_stand_at_their_devices(tmp_path: Path, streamed: bool) -> None:
    path = tmp_path / "pinned.mlir"
    path.write_text(CHAIN)
    model = braid.compile(path, target="npu-small", pin=["b=npu:0", "a=cpu", "c=cpu"])
    with model.traced() as trace:
        if streamed:
            list(model.stream([X] * 3))
        else:
            model(X)
    launches = of_kind(trace, EventKind.LAUNCH)
    assert "npu:0" in {event.place for event in launches}
    assert all(event.end >= event.begin for event in launches)
    if streamed:
        assert {event.request for event in of_kind(trace, EventKind.STAGE)} == {0, 1, 2}
    trace.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = [e for e in events if e["ph"] == "M" and "name" in e["args"]]
    assert "devices" in {e["args"]["name"] for e in rows}


def test_the_hardware_counts_or_says_why(model: braid.Model) -> None:
    model(X)
    with model.counted() as counters:
        for _ in range(3):
            model(X)
    report = counters.report()
    assert {*report.values, *report.missing} == COUNTERS
    assert not set(report.values) & set(report.missing)
    for reason in report.missing.values():
        assert "machine" in reason or "allow" in reason or "perf_event_open" in reason
    if "task_clock_ns" not in report.values:
        pytest.skip(report.missing["task_clock_ns"])
    clock = report.values["task_clock_ns"]
    names = {key for key, value in clock.items() if value > 0}
    assert {"a", "b", "c"} <= {part for key in names for part in key.partition("\t")[0].split("+")}
    # What is not attached does not count.
    before = dict(clock)
    model(X)
    assert counters.report().values["task_clock_ns"] == before


def test_counters_need_a_profile(source: Path) -> None:
    plain = braid.compile(source, threads=1)
    with pytest.raises(BraidError, match="no profile counters"), plain.counted():
        pass
    # Runs are traced of any model.
    with plain.traced() as trace:
        plain(X)
    assert {event.kind for event in trace.events()} == {EventKind.RUN}
    interpreted = braid.interpret(source)
    with pytest.raises(BraidError, match="interpreted"), interpreted.traced():
        pass
    with pytest.raises(BraidError, match="interpreted"), interpreted.counted():
        pass


def test_a_trace_is_of_one_model(model: braid.Model, source: Path) -> None:
    library = tracing_library()
    other = native(braid.compile(source, profile=True, threads=1, cache=False)).context(1)
    with model.traced() as trace:
        assert library.braid_context_set_trace(other.handle, trace.handle) != 0
        assert b"another model" in library.braid_last_error()
        assert not library.braid_trace_get(trace.handle, 0)


PROGRAM = r"""
#include <braid/trace.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
  (void)count;
  braid_model_t *model = braid_model_open(arguments[1]);
  braid_context_t *context = model != NULL ? braid_context_create(model, 1) : NULL;
  braid_trace_t *trace = braid_trace_create(model, 1 << 10);
  float *x = calloc(64 * 64, 4), *y = calloc(64 * 64, 4);
  if (context == NULL || braid_context_set_trace(context, trace) != 0 ||
      braid_context_run(context, (void *const *)&x, (void *const *)&y) != 0 ||
      braid_trace_write(trace, arguments[2]) != 0) {
    fprintf(stderr, "%s\n", braid_last_error());
    return 1;
  }
  printf("%lld\n", (long long)braid_trace_count(trace));
  braid_context_close(context);
  braid_trace_close(trace);
  braid_model_close(model);
}
"""


def test_a_program_in_c_writes_a_trace(model: braid.Model, tmp_path: Path) -> None:
    artifact, source, program = tmp_path / "m.braid", tmp_path / "p.c", tmp_path / "p"
    model.save(artifact)
    source.write_text(PROGRAM)
    library = find_library()
    flags = [f"-I{find_headers()}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}"]
    command = ["cc", str(source), *flags, "-lbraid_runtime", "-o", str(program)]
    subprocess.run(command, check=True)
    file = tmp_path / "trace.json"
    run = subprocess.run([program, artifact, file], check=True, capture_output=True, text=True)
    events = json.loads(file.read_text())["traceEvents"]
    assert int(run.stdout) == sum(event["ph"] == "X" for event in events) >= 3


def test_what_is_not_profiled_needs_the_old_version(model: braid.Model, source: Path) -> None:
    plain = braid.compile(source, threads=1)
    assert native(plain).descriptor.abi_version == 13
    assert native(model).descriptor.abi_version == 14
