"""Streams: order, errors, deadlines, ends; and the same from C."""

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import braid
from braid.support.errors import BraidError
from test.run.streams.conftest import FIRST, SECOND, SIZE, chain, inputs, parse
from test.threads import statuses_of_threads
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.passes.random_graphs import programs

Array = np.ndarray


def expected(model: braid.Model, requests: list[Array]) -> list[Array]:
    return [np.asarray(model(x)) for x in requests]


def check(results: list[object], wanted: list[Array]) -> None:
    assert len(results) == len(wanted)
    for result, array in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(result), array)


def threads_of_streams() -> int:
    return len(list(statuses_of_threads("braid-stream")))


def wait_until_gone() -> None:
    """Threads tell that they have ended a moment before the system forgets them."""
    end = time.monotonic() + 5
    while threads_of_streams() and time.monotonic() < end:
        time.sleep(0.01)
    assert threads_of_streams() == 0


def test_results_are_those_of_calls_in_order(two_cores: braid.Model) -> None:
    requests = inputs(200)
    check(list(two_cores.stream(requests)), expected(two_cores, requests))
    wait_until_gone()


def test_stages_work_side_by_side(two_cores: braid.Model) -> None:
    """Each has run once a request, and requests are pulled ahead of results."""
    pulled: list[int] = []

    def source() -> Iterator[Array]:
        for number, x in enumerate(inputs(10)):
            pulled.append(number)
            yield x

    with two_cores.stream(source()) as stream:
        assert stream.capacity >= 3
        next(stream)
        assert len(pulled) == stream.capacity
        list_of_rest = list(stream)
        assert len(list_of_rest) == 9
    stream = two_cores.stream(inputs(30))
    for _ in range(30):
        next(stream)
    stages = stream.stages()
    assert [stage.device for stage in stages] == [FIRST, SECOND, FIRST, SECOND]
    assert all(stage.count == 30 and stage.seconds > 0 for stage in stages)
    assert all(stage.expected_seconds > 0 and stage.name for stage in stages)
    stream.close()


def test_requests_by_name_in_tuples_and_wrong_ones(two_cores: braid.Model) -> None:
    x = inputs(1)[0]
    y = np.asarray(two_cores(x))
    wrong = x.astype(np.float64)
    check(list(two_cores.stream([(x,), {"x": x}, x])), [y] * 3)
    results = list(two_cores.stream([x, wrong, x, (x, x), x], return_errors=True))
    assert isinstance(results[1], BraidError) and "dtype float64" in str(results[1])
    assert isinstance(results[3], BraidError) and "2 positional" in str(results[3])
    check([results[i] for i in (0, 2, 4)], [y] * 3)
    stream = two_cores.stream([x, wrong, x])
    check([next(stream)], [y])
    with pytest.raises(BraidError, match="dtype float64"):
        next(stream)
    assert list(stream) == []
    with pytest.raises(BraidError, match="deadline is 0, expected a positive number"):
        two_cores.stream([x], deadline=0)


def test_a_buffer_may_be_filled_again(two_cores: braid.Model) -> None:
    """Inputs are copied unless the caller says that they stay."""
    buffer = np.empty(SIZE, np.float32)
    requests = inputs(40)

    def source() -> Iterator[Array]:
        for x in requests:
            buffer[:] = x
            yield buffer

    check(list(two_cores.stream(source())), expected(two_cores, requests))
    check(list(two_cores.stream(requests, copy=False)), expected(two_cores, requests))


def test_what_the_iterable_raises_comes_behind_the_results(two_cores: braid.Model) -> None:
    def source() -> Iterator[Array]:
        yield from inputs(3)
        raise OSError("the camera is gone")

    stream = two_cores.stream(source())
    check([next(stream) for _ in range(3)], expected(two_cores, inputs(3)))
    with pytest.raises(OSError, match="camera"):
        next(stream)
    wait_until_gone()


def test_async_for(two_cores: braid.Model) -> None:
    requests = inputs(50)
    ticks = 0

    async def source() -> AsyncIterator[Array]:
        for x in requests:
            await asyncio.sleep(0)
            yield x

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    async def read() -> list[object]:
        other = asyncio.create_task(tick())
        found: list[object] = [y async for y in two_cores.stream(source())]
        found += [y async for y in two_cores.stream(requests)]
        async with two_cores.stream(source()) as stream:
            async for y in stream:
                found.append(y)
                break
        with pytest.raises(BraidError, match="dtype"):
            async for _ in two_cores.stream([requests[0].astype(np.int32)]):
                pass
        other.cancel()
        return found

    wanted = expected(two_cores, requests)
    check(asyncio.run(read()), [*wanted, *wanted, wanted[0]])
    assert ticks > 0
    with pytest.raises(BraidError, match="use `async for`"):
        next(two_cores.stream(source()))
    wait_until_gone()


def test_an_asynchronous_result_does_not_wait_for_the_next_request(two_cores: braid.Model) -> None:
    """A caller that sends the next request only when it has the last result."""

    async def talk() -> None:
        queue: asyncio.Queue[Array] = asyncio.Queue()

        async def source() -> AsyncIterator[Array]:
            while True:
                yield await queue.get()

        async with two_cores.stream(source()) as stream:
            for x in inputs(5):
                queue.put_nowait(x)
                y = await asyncio.wait_for(anext(stream), 10)
                np.testing.assert_array_equal(np.asarray(y), np.asarray(two_cores(x)))

    asyncio.run(talk())


def test_an_error_names_the_function_and_the_stream_ends_or_goes_on(
    faulty: braid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = inputs(60)
    wanted = expected(faulty, requests)
    monkeypatch.setenv("FAULTY_FAILS", "150")
    results = list(faulty.stream(requests, return_errors=True))
    failed = [isinstance(result, BraidError) for result in results]
    assert 0 < sum(failed) < 60
    for result, array, wrong in zip(results, wanted, failed, strict=True):
        if wrong:
            assert "'@cluster_" in str(result) and "on 'cpu:1'" in str(result)
            assert "by chance" in str(result)
        else:
            np.testing.assert_array_equal(np.asarray(result), array)
    monkeypatch.setenv("FAULTY_FAILS", "300")
    stream = faulty.stream(requests)
    taken: list[object] = []
    with pytest.raises(BraidError, match=r"'@cluster_\d' on 'cpu:1'.*by chance"):
        taken.extend(stream)
    check(taken, wanted[: len(taken)])
    assert list(stream) == []
    monkeypatch.delenv("FAULTY_FAILS")
    check(list(faulty.stream(requests)), wanted)


def test_a_plugin_that_hangs_is_no_hang(
    faulty: braid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = inputs(1)[0]
    y = np.asarray(faulty(x))  # three launches of the plugin
    monkeypatch.setenv("FAULTY_HANGS_AT", "16")
    begin = time.monotonic()
    stream = faulty.stream([x] * 50, deadline=0.3, return_errors=True)
    taken: list[object] = []
    with pytest.raises(BraidError, match=r"'@cluster_\d' on 'cpu:1' has not ended in 0.3 s"):
        taken.extend(stream)
    assert time.monotonic() - begin < 1.5
    assert 0 < len(taken) < 50
    check(taken, [y] * len(taken))
    del stream
    gc.collect()
    time.sleep(max(0.0, begin + 2.5 - time.monotonic()))  # it uses its buffers until here
    monkeypatch.delenv("FAULTY_HANGS_AT")
    check(list(faulty.stream([x] * 5)), [y] * 5)
    wait_until_gone()


def test_half_read_streams_end_when_they_go(two_cores: braid.Model) -> None:
    for _ in range(20):
        stream = two_cores.stream(inputs(100))
        next(stream)
        del stream
    gc.collect()
    wait_until_gone()
    streams = [two_cores.stream(inputs(5)) for _ in range(4)]  # at the same time, on the same cores
    for results in zip(*streams, strict=True):
        check(list(results), [np.asarray(results[0])] * 4)
    closed = two_cores.stream(inputs(5))
    next(closed)
    closed.close()
    closed.close()
    assert list(closed) == []
    with pytest.raises(BraidError, match="has been closed"):
        closed.stages()


def test_a_stream_outlives_its_model() -> None:
    model = braid.compile(parse(chain(FIRST, SECOND)), target="host-2")
    requests = inputs(20)
    wanted = expected(model, requests)
    stream = model.stream(requests)
    del model
    gc.collect()
    check(list(stream), wanted)


def test_calls_beside_a_stream(two_cores: braid.Model) -> None:
    requests = inputs(100)
    wanted = expected(two_cores, requests)
    wrong: list[int] = []

    def call() -> None:
        for number, x in enumerate(requests):
            if not np.array_equal(np.asarray(two_cores(x)), wanted[number]):
                wrong.append(number)

    thread = threading.Thread(target=call)
    thread.start()
    check(list(two_cores.stream(requests)), wanted)
    thread.join()
    assert not wrong


def test_forked_children(two_cores: braid.Model) -> None:
    """A child has none of the threads: its copy of an open stream fails, and new ones work."""
    requests = inputs(30)
    wanted = expected(two_cores, requests)
    stream = two_cores.stream(requests)
    first = next(stream)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            next(stream)
        except BraidError as error:
            status = 0 if "has forked" in str(error) else 2
        del stream
        gc.collect()
        own = [np.asarray(y) for y in two_cores.stream(requests)]
        same = all(map(np.array_equal, own, wanted))
        os._exit(status if same else 3)
    check([first, *stream], wanted)
    assert os.waitpid(child, 0)[1] == 0


BRANCH = """
func.func @main(%x: tensor<8xf32> {braid.name = "x"}, %c: tensor<i1> {braid.name = "c"})
    -> (tensor<8xf32> {braid.name = "y"}) {
  %0 = braid.neg %x {braid.device = "cpu:1"} : (tensor<8xf32>) -> tensor<8xf32>
  %b = tensor.extract %c[] : tensor<i1>
  %1 = scf.if %b -> (tensor<8xf32>) {
    %2 = braid.exp %0 {braid.device = "cpu:1"} : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  } else {
    scf.yield %0 : tensor<8xf32>
  }
  %y = braid.exp %1 {braid.device = "cpu:0"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
"""


def branches(count: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=8).astype(np.float32), np.array(i % 3 == 0)) for i in range(count)]


@pytest.mark.parametrize("target", ["host", "host-2"])
def test_control_flow(target: str) -> None:
    """A stage of the host that launches other functions, next to stages of devices."""
    text = BRANCH if target == "host-2" else BRANCH.replace("cpu:1", "cpu:0")
    model = braid.compile(parse(text), target=target)
    requests = branches(20)
    wanted = [np.asarray(model(*request)) for request in requests]
    interpreted = braid.interpret(parse(text))
    for y, request in zip(wanted, requests, strict=True):
        np.testing.assert_allclose(y, np.asarray(interpreted(*request)), rtol=1e-5)
    with model.stream(requests) as stream:
        check([next(stream) for _ in requests], wanted)
        names = [stage.name for stage in stream.stages()]
    assert names == (["main"] if target == "host" else ["cluster_0", "host_0", "cluster_1"])


def test_a_launch_in_control_flow_fails(
    faulty_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(Path(faulty_target).parent))
    text = BRANCH.replace('neg %x {braid.device = "cpu:1"}', 'neg %x {braid.device = "cpu:0"}')
    model = braid.compile(parse(text), target=faulty_target)
    requests = branches(60)
    wanted = [np.asarray(model(*request)) for request in requests]
    monkeypatch.setenv("FAULTY_FAILS", "300")
    results = list(model.stream(requests, return_errors=True))
    failed = [i for i, result in enumerate(results) if isinstance(result, BraidError)]
    # Only the first branch launches what fails, each third time.
    assert 0 < len(failed) < 20 and all(i % 3 == 0 for i in failed)
    assert all("'@cluster_" in str(results[i]) for i in failed)
    for i in {*range(60)} - {*failed}:
        np.testing.assert_array_equal(np.asarray(results[i]), wanted[i])
    with pytest.raises(BraidError, match="by chance"):
        for _ in range(100):
            model(*requests[0])
    monkeypatch.delenv("FAULTY_FAILS")
    check(list(model.stream(requests)), wanted)


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_random_programs(program: tuple[str, dict[str, Array]], seed: int) -> None:
    check_random(program, seed)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_forty_random_programs(program: tuple[str, dict[str, Array]], seed: int) -> None:
    check_random(program, seed)


def check_random(program: tuple[str, dict[str, Array]], seed: int) -> None:
    """Streams of programs that are split at random give what calls and the interpreter give."""
    text, parameters = program
    module = parse(text)
    split_at_random(module, [FIRST, SECOND], Random(seed))
    model = braid.compile(module, parameters=parameters, target="host-2")
    interpreted = braid.interpret(parse(text), parameters=parameters)
    rng = np.random.default_rng(seed)
    requests = [rng.normal(size=(1, 4, 6, 6)).astype(np.float32) for _ in range(12)]
    wanted = [np.asarray(model(x)) for x in requests]
    np.testing.assert_allclose(
        wanted[0], np.asarray(interpreted(requests[0])), rtol=1e-4, atol=1e-4
    )
    check(list(model.stream(requests)), wanted)


def test_models_without_devices() -> None:
    text = chain(FIRST, FIRST)
    requests = inputs(20)
    interpreted = braid.interpret(parse(text))
    wanted = expected(interpreted, requests)
    check(list(interpreted.stream(requests)), wanted)
    compiled = braid.compile(parse(text))
    check(list(compiled.stream(requests)), wanted)
    (whole,) = (stream := compiled.stream(requests)).stages()
    assert whole.name == "main" and next(stream) is not None
    bad = [requests[0], requests[0][:3]]
    results = list(interpreted.stream(bad, return_errors=True))
    assert isinstance(results[1], BraidError)


@pytest.mark.parametrize("target", ["host", "host-2"])
def test_streams_count_in_profiles(target: str) -> None:
    """Also control flow of the host and its launches; while they run, and when they end."""
    text = BRANCH if target == "host-2" else BRANCH.replace("cpu:1", "cpu:0")
    for name in ("neg", "exp"):
        text = text.replace(f"braid.{name} %0 {{", f'braid.{name} %0 {{braid.name = "inner", ')
        text = text.replace(f"braid.{name} %x {{", f'braid.{name} %x {{braid.name = "first", ')
    model = braid.compile(parse(text), target=target, profile=True)
    requests = branches(20)
    with model.stream(requests) as stream:
        for _ in requests:
            next(stream)
        running = model.profile()
    for profile in (running, model.profile()):
        assert (profile["first"].count, profile["inner"].count) == (20, 7)
        assert profile["first"].seconds > 0
    model(*requests[0])
    assert model.profile()["first"].count == 21
    stream = model.stream(requests)
    next(stream)
    model.reset_profile()
    for _ in stream:
        pass
    assert 0 < model.profile()["first"].count <= 20


def test_slots_count_in_memory(two_cores: braid.Model) -> None:
    (report,) = two_cores.memory[:1]
    assert report.function == "main" and report.slot_bytes >= 3 * 2 * 4 * SIZE
    assert "slots of a stream" in str(report)
    assert report.to_json()["slot_bytes"] == report.slot_bytes
    assert braid.compile(parse(chain(FIRST, FIRST))).memory[0].slot_bytes == 0
