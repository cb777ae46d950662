"""ONNX Runtime as a reference, with every value of the model's graph as an output."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import onnx
from numpy.typing import NDArray

from braid.frontends.onnx.fixed_inputs import Fixed, fix_inputs
from braid.frontends.onnx.model_file import ModelFile
from braid.support.errors import BraidError
from braid.support.input_files import reason

_DOMAINS = {
    "",
    "ai.onnx",
    "ai.onnx.ml",
    "ai.onnx.preview.training",
    "ai.onnx.training",
    "com.microsoft",
    "com.microsoft.nchwc",
}
"""Domains of which ONNX Runtime has ops."""

Array = NDArray[Any]


def onnxruntime_is_installed() -> bool:
    """Return whether the package is there."""
    return find_spec("onnxruntime") is not None


class OnnxReference:
    """An ONNX model whose intermediate values can be asked for."""

    def __init__(self, path: Path, constants: Mapping[str, object]) -> None:
        """Read the model, some of whose inputs have values that `constants` fixes.

        Raises:
            BraidError: ONNX cannot read it.

        """
        try:
            self._model = onnx.load(path)  # pyright: ignore[reportUnknownMemberType]  PathLike is unbound
        except Exception as error:
            raise BraidError(f"ONNX cannot read '{path}': {reason(error)}") from error
        self._fixed = fix_inputs(ModelFile(path), Fixed(constants=constants)).constants
        nodes = self._model.graph.node
        self.value_names = tuple(name for node in nodes for name in node.output if name)
        own = {function.domain for function in self._model.functions}
        self.foreign_ops = tuple(
            dict.fromkeys(
                f"{node.domain}:{node.op_type}"
                for node in nodes
                if node.domain not in _DOMAINS | own
            )
        )
        """Ops of domains that ONNX Runtime does not have, once each."""

    def run(self, inputs: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Run the model and return the values of these names.

        Raises:
            BraidError: ONNX Runtime refuses the model or fails on it.

        """
        graph = self._model.graph
        present = {output.name for output in graph.output}
        graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
        try:
            results = cast(list[Array], self._session().run(list(names), {**inputs, **self._fixed}))
        except Exception as error:
            raise BraidError(f"ONNX Runtime fails on the model: {_first_line(error)}") from error
        return dict(zip(names, results, strict=True))

    def refusal(self) -> str | None:
        """Return why ONNX Runtime does not load the model, such as for a type of an op; or None."""
        try:
            self._session()
        except Exception as error:
            return _first_line(error)
        return None

    def _session(self) -> Any:
        """Return the model loaded without optimizations, so that every op of the graph runs.

        Raises what ONNX Runtime raises.
        """
        onnxruntime: Any = import_module("onnxruntime")
        options: Any = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        # 4: only what is fatal. A refusal is reported by who asks, in words of its own.
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(
            self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
