"""A context with the values of a model's parameters, as MLIR's contexts hold resources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context


@dataclass
class ModelContext(Context):
    """Passes may look at the values by key; without them they decide as for any values."""

    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])


def parameters_in(context: Context) -> Mapping[str, NDArray[Any]]:
    """Return the values that `context` knows, none where it is another's."""
    return context.parameters if isinstance(context, ModelContext) else {}
