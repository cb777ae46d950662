"""Models from when they are loaded to when they are closed: threads, notebooks, `with`."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from jupyter_client.manager import start_new_kernel

import braid
from braid.support.errors import BraidError

Expected = Callable[[np.ndarray], np.ndarray]

USES: dict[str, Callable[[braid.Model, np.ndarray, Path], object]] = {
    "call": lambda model, x, path: model(x),
    "run": lambda model, x, path: model.run([x]),
    "run_named": lambda model, x, path: model.run_named({"x": x}),
    "stream": lambda model, x, path: model.stream([x]),
    "profile": lambda model, x, path: model.profile(),
    "reset_profile": lambda model, x, path: model.reset_profile(),
    "launched_seconds": lambda model, x, path: model.launched_seconds(),
    "trim": lambda model, x, path: model.trim(),
    "threads": lambda model, x, path: model.threads,
    "save": lambda model, x, path: model.save(path),
    "save_c_library": lambda model, x, path: model.save_c_library(path),
    "copy": lambda model, x, path: model.__copy__(),
    "pickle": lambda model, x, path: model.__reduce_ex__(5),
    "with": lambda model, x, path: model.__enter__(),
}


@pytest.fixture(scope="module")
def saved(affine: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "affine.braid"
    braid.compile(affine, jobs=1, profile=True).save(path)
    return path


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_with_ends_the_model(saved: Path, x: np.ndarray, expected: Expected) -> None:
    with braid.load(saved) as model:
        np.testing.assert_allclose(model(x)[0], expected(x), rtol=1e-5, atol=1e-6)
        assert is_mapped(saved)
    assert not is_mapped(saved)
    model.close()


@pytest.mark.parametrize("use", USES)
def test_a_closed_model_is_refused(saved: Path, x: np.ndarray, tmp_path: Path, use: str) -> None:
    model = braid.load(saved)
    model.close()
    with pytest.raises(BraidError, match="the model is closed"):
        USES[use](model, x, tmp_path / "new.so")


def test_what_describes_a_closed_model_stays(saved: Path) -> None:
    with braid.load(saved) as model:
        described = repr(model), model._repr_html_(), model.memory, model.kernels
    assert (repr(model), model._repr_html_(), model.memory, model.kernels) == described


def test_what_runs_goes_on(saved: Path, x: np.ndarray, expected: Expected) -> None:
    model = braid.load(saved)
    stream = model.stream([x] * 3)
    first = next(stream)
    model.close()
    for y, _ in [first, *stream]:
        np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)


def test_threads_are_set_at_any_time(saved: Path, x: np.ndarray, expected: Expected) -> None:
    """Runs that go on meanwhile keep theirs, and no run is forgotten."""
    model = braid.load(saved, threads=1)
    runs, errors = 40, list[BaseException]()

    def call() -> None:
        try:
            for _ in range(runs):
                np.testing.assert_allclose(model(x)[0], expected(x), rtol=1e-5, atol=1e-6)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for threads in (2, 1, 0, 3):
        model.threads = threads
        assert model.threads == threads
        model(x)
    for caller in callers:
        caller.join()
    assert not errors
    model(x)
    assert {entry.count for entry in model.profile().values()} == {3 * runs + 5}
    context = model._open().executor._take()  # pyright: ignore
    assert context.threads == 3


@pytest.mark.parametrize(
    ("threads", "message"), [(-1, "at least 0"), (1.5, "a whole number"), (True, "a whole number")]
)
def test_wrong_threads(saved: Path, threads: object, message: str) -> None:
    model = braid.load(saved)
    with pytest.raises(BraidError, match=message):
        model.threads = threads  # pyright: ignore
    assert model.threads == 1


def test_threads_of_the_interpreter(affine: onnx.ModelProto) -> None:
    model = braid.interpret(affine)
    model.threads = 1
    with pytest.raises(BraidError, match="threads is 2, expected 1 of an interpreted model"):
        model.threads = 2


@pytest.mark.parametrize("form", ["mapping", "mapping and keywords"])
def test_inputs_by_name(form: str) -> None:
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Sub", ["a.1", "b"], ["c"])],
        "difference",
        [value("a.1", 1, [2]), value("b", 1, [2])],
        [value("c", 1, [2])],
    )
    model = braid.interpret(onnx.helper.make_model(graph, ir_version=9))
    a, b = np.float32([5, 7]), np.float32([1, 2])
    result = model({"b": b, "a.1": a}) if form == "mapping" else model({"a.1": a}, b=b)
    np.testing.assert_array_equal(result, [4, 5])
    with pytest.raises(BraidError, match="'b' is given in the mapping and by keyword"):
        model({"a.1": a, "b": b}, b=b)
    with pytest.raises(BraidError, match=r"no value for input 'a\.1'"):
        model({"b": b})
    with pytest.raises(BraidError, match="no input 'd'"):
        model({"a.1": a, "b": b, "d": b})


def test_names_are_escaped_in_html() -> None:
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["<b>x"], ["y&"])],
        "relu",
        [value("<b>x", 1, ["<i>n", 2])],
        [value("y&", 1, ["<i>n", 2])],
    )
    html = braid.interpret(onnx.helper.make_model(graph, ir_version=9))._repr_html_()
    assert "&lt;b&gt;x" in html and "y&amp;" in html and "&lt;i&gt;n" in html
    assert "<b>" not in html and "<i>" not in html


@pytest.mark.slow
def test_a_notebook_shows_tables(saved: Path, tmp_path: Path) -> None:
    code = f"import braid\nbraid.load({str(saved)!r})"
    messages: list[dict[str, object]] = []
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        reply = client.execute_interactive(code, timeout=120, output_hook=messages.append)
        assert reply["content"]["status"] == "ok", reply
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    shown = [m["content"]["data"] for m in messages if m["msg_type"] == "execute_result"]  # pyright: ignore
    assert len(shown) == 1
    assert "<td>total</td><td>float32</td>" in shown[0]["text/html"]
    assert shown[0]["text/plain"].startswith("<braid.Model (x: float32[4, 8])")
