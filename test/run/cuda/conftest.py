"""Models on the device plugin `cuda`, whose driver is a stand-in that checks every call."""

from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from braid.lowering.gpu.emulated_library import VARIABLE
from test.c_programs import PLUGIN, build

SOURCES = sorted((Path(__file__).parent / "standin").glob("*.c"))
TARGET = "gpu-a100"


class Driver:
    """The stand-in, as used by this process or one that it starts."""

    def __init__(self, library: Path, emulated: Path, log: Path) -> None:
        self.library = library
        self.log = log
        self.environment = {
            "BRAID_CUDA_LIBRARY": str(library),
            VARIABLE: str(emulated),
            "STANDIN_LOG": str(log),
        }

    def calls(self) -> list[str]:
        """Names of the calls so far."""
        return [line.partition("(")[0] for line in self._lines() if line[:2] == "cu"]

    def violations(self) -> list[str]:
        """Return the violations so far."""
        return [line for line in self._lines() if line.startswith("VIOLATION")]

    def forget(self) -> None:
        """Begins a new log."""
        self.log.write_text("")

    def check(self) -> None:
        """All was right, and nothing is left."""
        assert self.violations() == []
        counts = Counter(self.calls())
        retained, released = "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"
        # Its threads keep their contexts, so that no other pair is even before.
        assert counts[retained] == counts[released], "a model is still open"
        for made, ended in (
            ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"),
            ("cuGraphInstantiateWithFlags", "cuGraphExecDestroy"),
        ):
            assert counts[made] == counts[ended], made
        assert counts[retained] > 0

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the library, and the directory of emulated modules."""
    directory = tmp_path_factory.mktemp("standin")
    flags = (*PLUGIN, "-O1")
    return build(directory / "libcuda.so.1", *SOURCES, "-ldl", flags=flags), directory / "modules"


@pytest.fixture
def driver(
    standin: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Driver]:
    """Use the stand-in in this process, whose models end before the test does."""
    library, emulated = standin
    own = Driver(library, emulated, tmp_path / "calls")
    for name, value in own.environment.items():
        monkeypatch.setenv(name, value)
    own.forget()
    yield own
