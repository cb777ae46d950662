"""The C runtime, built with the address, undefined behavior and thread sanitizers."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import braid
from braid.frontends.mlir import parse_mlir
from braid.runtime.native import NativeModel
from braid.runtime.native_abi import find_headers
from braid.support.errors import BraidError
from braid.universe import make_context
from test.c_programs import PLUGIN, build
from test.unit.runtime.test_damaged_artifacts import check_in_c, product
from test.unit.runtime.test_open_models import SOURCE as OPEN_MODEL
from test.unit.runtime.test_open_models import write_open_model
from test.unit.runtime.test_sessions import save_models

NATIVE = Path(__file__).parents[3] / "runtime" / "native"
PROGRAMS = {
    "run_model": NATIVE / "examples" / "run_model.c",
    "stream_model": NATIVE / "examples" / "stream_model.c",
    "null_pointers": Path(__file__).with_name("null_pointers.c"),
    "random_requests": Path(__file__).with_name("random_requests.c"),
    "open_models": Path(__file__).with_name("open_models.c"),
    "session_model": NATIVE / "examples" / "session_model.c",
    "random_sessions": Path(__file__).with_name("random_sessions.c"),
}
ADDRESSES = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)


def subtract_mean(dim: str) -> braid.Model:
    """Return a model whose results padding cannot give, so that each size has its own variant."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], keepdims=1, axes=[0]),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ]
    x, y = (info(name, TensorProto.FLOAT, [dim, 4]) for name in ("x", "y"))
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return braid.compile(model, shape_buckets={dim: [2, 4, 6]}, cache=False)


@pytest.mark.parametrize("dim", ["d" * 700, "größe" * 200, "n"], ids=["long", "umlauts", "short"])
def test_a_message_with_long_names_is_cut(dim: str) -> None:
    model = subtract_mean(dim)
    np.testing.assert_array_equal(model(np.ones((4, 4), "f4")), np.zeros((4, 4)))
    with pytest.raises(BraidError) as caught:
        model(np.ones((3, 4), "f4"))
    message = caught.value.message
    assert message.startswith(f"the model has no variant for {dim[:40]}")
    assert "=3; it has " in message and "=2 " in message and "\ufffd" not in message


def test_messages_are_bounded(tmp_path: Path) -> None:
    source = Path(__file__).with_name("bounded_messages.c")
    flags = (*ADDRESSES, f"-I{NATIVE / 'src'}", "-D_GNU_SOURCE")
    subprocess.run([build(tmp_path / "messages", source, flags=flags)], check=True)


def sanitized(name: str, folder: Path, flags: tuple[str, ...]) -> Path:
    """Build a program with all sources of the runtime."""
    machine = "x86" if (NATIVE / "src").exists() and "x86" in _machine() else "aarch64"
    other = {"x86": "cpu_features_aarch64.c", "aarch64": "cpu_features_x86.c"}[machine]
    sources = [file for file in (NATIVE / "src").rglob("*.c") if file.name != other]
    places = (f"-I{NATIVE / 'src'}", f"-I{find_headers()}", '-DBRAID_SOURCES=""')
    options = ("-std=gnu11", "-O1", "-g", "-rdynamic", *flags, *places)
    model = [OPEN_MODEL] if name == "open_models" else []
    return build(folder / name, PROGRAMS[name], *model, *sources, "-lm", "-ldl", flags=options)


def _machine() -> str:
    import platform

    return platform.machine().lower()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sanitized")


@pytest.fixture(scope="module")
def artifacts(folder: Path) -> list[Path]:
    """Of f32: one kernel and several, buckets, with long names, two devices, open sizes."""
    lines = "\n".join(
        f'  %v{i} = braid.add %v{i - 1}, %v0 {{braid.device = "cpu:{i % 2}"}} : (!t, !t) -> !t'
        for i in range(1, 5)
    )
    chain = f"""
!t = tensor<64xf32>
func.func @main(%v0: !t {{braid.name = "x"}}) -> (!t {{braid.name = "y"}}) {{
{lines}
  func.return %v4 : !t
}}
"""
    module = parse_mlir(make_context(), chain, "chain.mlir").module
    models = {
        "product": braid.compile(product(), jobs=1),
        "long": subtract_mean("d" * 700),
        "short": subtract_mean("n"),
        "devices": braid.compile(module, target="host-2", jobs=1),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.braid")
    code = build(folder / "open_model.so", OPEN_MODEL, flags=PLUGIN).read_bytes()
    write_open_model(folder / "open.braid", NativeModel.from_memory(code), code)
    return [folder / f"{name}.braid" for name in (*models, "open")]


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("flags", [ADDRESSES, THREADS], ids=["addresses", "threads"])
def test_examples_and_random_requests(
    folder: Path, artifacts: list[Path], flags: tuple[str, ...]
) -> None:
    run_model = sanitized("run_model", folder, flags)
    for artifact in artifacts:
        run(run_model, artifact, "2", "2 * n=2")  # a dim of the open model alone
    stream_model = sanitized("stream_model", folder, flags)
    for artifact in (folder / "product.braid", folder / "devices.braid"):
        assert len(run(stream_model, artifact, "200").splitlines()) == 200
    random_requests = sanitized("random_requests", folder, flags)
    found = run(random_requests, "1", "300", "4", *artifacts)
    answered, refused, damaged = map(int, found.split())
    print(f"{answered} requests answered, {refused} refused; {damaged} damaged artifacts refused")
    assert answered > 500 and refused > 200 and damaged > 500


@pytest.mark.slow
@pytest.mark.parametrize("flags", [ADDRESSES, THREADS], ids=["addresses", "threads"])
def test_open_models(folder: Path, flags: tuple[str, ...]) -> None:
    """Without children of fork, in which the allocators of sanitizers may wait for ever."""
    program = sanitized("open_models", folder, (*flags, "-DNO_FORKS"))
    found = run(program, "4", "2000")
    assert int(found.split()[0]) == 8100


@pytest.mark.slow
@pytest.mark.parametrize("flags", [ADDRESSES, THREADS], ids=["addresses", "threads"])
def test_sessions(folder: Path, flags: tuple[str, ...]) -> None:
    """Without more memory than there is, at which the allocators of sanitizers stop."""
    models = save_models(folder)
    session_model = sanitized("session_model", folder, flags)
    assert len(run(session_model, models[0], "70", "B=2").splitlines()) == 140
    random_sessions = sanitized("random_sessions", folder, (*flags, "-DNO_HUGE"))
    steps, failures = map(int, run(random_sessions, *models, "7", "4", "3000").split()[-2:])
    print(f"{steps} steps of sessions, {failures} that failed")
    assert steps > 5000 and failures > 300


@pytest.mark.slow
def test_damaged_artifacts(folder: Path, artifacts: list[Path], tmp_path: Path) -> None:
    program = sanitized("run_model", folder, ADDRESSES)
    found = check_in_c(program, artifacts[0], tmp_path, range(5000, 5300))
    assert found[1] > 200
