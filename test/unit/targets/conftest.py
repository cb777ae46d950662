"""Targets that tests describe in their own text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from braid.targets.machines.load import load_target
from braid.targets.machines.target import Target

LoadText = Callable[..., Target]


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    """Load the target that a text describes, from `toy.toml` unless another name is given."""

    def load(text: str, name: str = "toy.toml") -> Target:
        path = tmp_path / name
        path.write_text(text)
        return load_target(str(path))

    return load
