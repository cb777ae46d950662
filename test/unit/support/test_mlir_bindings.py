"""Which bindings of upstream MLIR are taken: those that are installed, else what the wheel has."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from braid.support import mlir_bindings
from braid.support.errors import BraidError


@pytest.fixture
def none_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(mlir_bindings, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    mlir_bindings.package.cache_clear()
    yield
    mlir_bindings.package.cache_clear()


@pytest.mark.usefixtures("none_installed")
def test_bundled_ones_are_found_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlir_bindings, "_BUNDLED", tmp_path)
    assert mlir_bindings.package() == "torch_mlir"
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.usefixtures("none_installed")
def test_without_any_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlir_bindings, "_BUNDLED", tmp_path / "none")
    with pytest.raises(BraidError, match="bindings of MLIR are missing") as error:
        mlir_bindings.package()
    assert error.value.hint == "pip install braid-compiler"


def test_installed_ones_come_first() -> None:
    path = list(sys.path)
    mlir_bindings.package.cache_clear()
    assert mlir_bindings.package() in ("torch_mlir", "mlir")
    assert sys.path == path
