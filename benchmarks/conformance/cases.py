"""The cases: models with inputs and expected outputs, from the `onnx` package."""

# pyright: basic

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

from braid.support.errors import UnsupportedError

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
CORE_TYPES = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}

Arrays = list[Any]


@dataclass(frozen=True)
class Case:
    """One backend test; a data set is inputs and expected outputs, in the model's order."""

    name: str
    source: Any
    rtol: float
    atol: float

    @cached_property
    def model(self) -> ModelProto:
        """The model."""
        if self.source.model is not None:
            return self.source.model
        return onnx.load(Path(self.source.model_dir) / "model.onnx")

    @property
    def data_sets(self) -> Iterator[tuple[Arrays, Arrays]]:
        """The data sets as arrays. Raises UnsupportedError for what is not a tensor."""
        if self.source.data_sets is not None:
            for inputs, outputs in self.source.data_sets:
                yield [to_array(x) for x in inputs], [to_array(y) for y in outputs]
            return
        for folder in sorted(Path(self.source.model_dir).glob("test_data_set_*")):
            yield (
                stored(folder, "input", len(self.model.graph.input)),
                stored(folder, "output", len(self.model.graph.output)),
            )

    @property
    def ops(self) -> tuple[str, ...]:
        """The op types of the model, without repetition."""
        return tuple(dict.fromkeys(node.op_type for node in self.model.graph.node))

    @property
    def is_core(self) -> bool:
        """True if all shapes are given, and all types are f32, i32, i64 or bool."""
        return self.is_static and all(
            value.type.tensor_type.elem_type in CORE_TYPES for value in self._ports
        )

    @property
    def is_static(self) -> bool:
        """True if all inputs and outputs are tensors of given shapes."""
        return all(is_static(value) for value in self._ports)

    @property
    def _ports(self) -> list[ValueInfoProto]:
        return [*self.model.graph.input, *self.model.graph.output]


def is_static(value: ValueInfoProto) -> bool:
    """Return whether the value is a tensor of a given shape."""
    tensor = value.type.tensor_type
    dims = tensor.shape.dim
    return value.type.HasField("tensor_type") and all(d.HasField("dim_value") for d in dims)


def to_array(value: Any) -> Any:
    """Return a tensor, an array or a number as an array. Raises UnsupportedError for sequences."""
    if value is None or isinstance(value, (list, tuple)):
        raise UnsupportedError("sequences and optional values are not supported")
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def stored(folder: Path, kind: str, count: int) -> Arrays:
    """Return the arrays in `kind_0.pb`, `kind_1.pb` and so on."""
    files = [folder / f"{kind}_{i}.pb" for i in range(count)]
    return [to_array(TensorProto.FromString(file.read_bytes())) for file in files if file.exists()]


def load_cases(kinds: Sequence[str] = ("node",)) -> dict[str, Case]:
    """All cases of these kinds by name, in order."""
    return dict(_load_cases(tuple(kinds)))


@cache
def _load_cases(kinds: tuple[str, ...]) -> dict[str, Case]:
    """Return the same; ONNX computes them, which takes many seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about what the cases compute on purpose
        tests = [test for kind in kinds for test in load_model_tests(kind=kind)]
    cases = [Case(test.name, test, test.rtol, test.atol) for test in tests]
    return {case.name: case for case in sorted(cases, key=lambda case: case.name)}
