"""A compiled model without a compiler: a hand-written C file with the model interface."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from braid.runtime.artifact import write_artifact
from braid.runtime.manifest import Manifest, TensorSpec, WeightSpec

HEADERS = Path(__file__).parents[3] / "runtime" / "native" / "include"
MODEL = Path(__file__).parent / "scaled_sum.c"
ROWS, COLUMNS = 1000, 8

Build = Callable[..., bytes]


@pytest.fixture(scope="session")
def build_code(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a file, `scaled_sum.c` by default, with macro definitions to a shared object."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def build(source: Path = MODEL, **definitions: str | int) -> bytes:
        output = tmp_path_factory.mktemp("code") / "model.so"
        macros = [f"-D{name}={value}" for name, value in definitions.items()]
        flags = ["-shared", "-fPIC", "-O1", f"-I{HEADERS}"]
        subprocess.run([compiler, *flags, *macros, source, "-o", output], check=True)
        return output.read_bytes()

    return build


@pytest.fixture(scope="session")
def code(build_code: Build) -> bytes:
    return build_code()


def place(
    arrays: dict[str, np.ndarray], size: int = 0
) -> tuple[np.ndarray, tuple[WeightSpec, ...]]:
    """Return a section of at least `size` bytes with the arrays one after the other, and its
    index."""
    index: list[WeightSpec] = []
    for name, array in arrays.items():
        offset = -(-(index[-1].offset + index[-1].nbytes) // 64) * 64 if index else 0
        index.append(WeightSpec(name, array.dtype.name, array.shape, offset, array.nbytes))
        size = max(size, offset + array.nbytes)
    memory = np.zeros(size + 64, np.uint8)
    section = memory[-memory.ctypes.data % 64 :][:size]
    for spec, array in zip(index, arrays.values(), strict=True):
        section[spec.offset :][: spec.nbytes] = array.reshape(-1).view(np.uint8)
    return section, tuple(index)


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    scale = np.array([3.0], np.float32)
    bias = np.arange(COLUMNS, dtype=np.float32)
    return {"scale": scale, "bias": bias}


@pytest.fixture
def section(weights: dict[str, np.ndarray]) -> np.ndarray:
    return place(weights, 128)[0]


@pytest.fixture
def manifest(weights: dict[str, np.ndarray]) -> Manifest:
    x = TensorSpec("x", "float32", (-1, COLUMNS), (ROWS, COLUMNS))
    y = TensorSpec("y", "float32", (-1, COLUMNS), (ROWS, COLUMNS))
    total = TensorSpec.static("total", "float32", ())
    return Manifest(
        model="scaled_sum",
        inputs=(x,),
        outputs=(y, total),
        arena_bytes=ROWS * 8,
        target="host",
        triple="x86_64-unknown-linux-gnu",
        cpu_features=(),
        builder="test",
        weights=place(weights)[1],
    )


@pytest.fixture
def artifact_path(tmp_path: Path, code: bytes, section: np.ndarray, manifest: Manifest) -> Path:
    path = tmp_path / "model.braid"
    write_artifact(path, manifest, code, section)
    return path
