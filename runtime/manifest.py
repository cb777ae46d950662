"""What an artifact says about itself, for people and for Python: JSON in its first section."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from braid.support.errors import BraidError


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: row-major, with numpy's (or ml_dtypes') name for its element type.

    `shape` has -1 for an open dim; `bound` is the upper bound of each dim, equal to `shape` where
    the dim is not open. `dims` names the open dims that are among the model's, "" elsewhere; it is
    empty where there are none.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: tuple[int, ...]
    dims: tuple[str, ...] = ()

    @classmethod
    def static(cls, name: str, dtype: str, shape: tuple[int, ...]) -> "TensorSpec":
        """Return the spec of a tensor without open dims."""
        return cls(name, dtype, shape, shape)


@dataclass(frozen=True)
class DimSpec:
    """A dim that inputs and outputs share, and the sizes of it for which there is code.

    Sizes from `padded_from` on are padded up to the next of these; 0 means that none are.
    """

    name: str
    sizes: tuple[int, ...]
    padded_from: int


@dataclass(frozen=True)
class WeightSpec:
    """Where a weight lies: `offset` bytes into the weights section, a multiple of 64."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Manifest:
    """An artifact's description.

    `target` is the LLVM triple of the code; `cpu_features` are LLVM's names of the features that
    the CPU must have. `arena_bytes` is the memory that each context takes for intermediates.
    `builder` names the program and version that wrote the artifact. `dims` are the dims for whose
    sizes there are variants of the code, every combination of these.
    """

    model: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int
    target: str
    cpu_features: tuple[str, ...]
    builder: str
    weights: tuple[WeightSpec, ...] = ()
    dims: tuple[DimSpec, ...] = ()

    def with_weights(self, weights: tuple[WeightSpec, ...]) -> "Manifest":
        """Return this manifest with another index of weights."""
        return replace(self, weights=weights)

    def to_json(self) -> str:
        """Return the manifest as indented JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Manifest":
        """Read a manifest; fields that this version does not know are ignored.

        Raises:
            BraidError: the text is not JSON, or a field is missing or of the wrong kind.

        """
        try:
            fields = cast(dict[str, Any], json.loads(text))
            return cls(
                model=str(fields["model"]),
                inputs=tuple(map(_read_tensor, fields["inputs"])),
                outputs=tuple(map(_read_tensor, fields["outputs"])),
                arena_bytes=int(fields["arena_bytes"]),
                target=str(fields["target"]),
                cpu_features=tuple(map(str, fields["cpu_features"])),
                builder=str(fields["builder"]),
                weights=tuple(map(_read_weight, fields["weights"])),
                dims=tuple(map(_read_dim, fields.get("dims", ()))),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise BraidError(f"malformed manifest: {error!r}") from error


def _read_tensor(fields: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(
        str(fields["name"]),
        str(fields["dtype"]),
        tuple(fields["shape"]),
        tuple(fields["bound"]),
        tuple(fields.get("dims", ())),
    )


def _read_dim(fields: Mapping[str, Any]) -> DimSpec:
    return DimSpec(str(fields["name"]), tuple(fields["sizes"]), int(fields["padded_from"]))


def _read_weight(fields: Mapping[str, Any]) -> WeightSpec:
    return WeightSpec(
        str(fields["name"]),
        str(fields["dtype"]),
        tuple(fields["shape"]),
        int(fields["offset"]),
        int(fields["nbytes"]),
    )
