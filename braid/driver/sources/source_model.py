"""A model as it was read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

Parameters = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class SourceModel:
    """A module that is the caller's own to change, and the values of its parameters by key."""

    name: str
    module: ModuleOp
    parameters: Parameters
