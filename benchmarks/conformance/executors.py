"""Ways to run a case: braid's interpreter, braid's compiler, and peers.

An executor gets a model and the inputs of one data set in order, and gives the outputs in order.
Executors raise `UnsupportedError` for what they declare not to do.
"""

from collections.abc import Callable
from typing import Any

from onnx import ModelProto

import braid
from benchmarks.conformance.cases import Arrays
from benchmarks.conformance.peers import (
    by_iree,
    by_onnx_runtime,
    by_reference,
    by_torch_mlir,
    input_names,
)
from braid.analysis.interpreter import interpret
from braid.frontends.onnx import ImportedModel, import_onnx
from braid.support.errors import UnsupportedError

_DEPENDS_ON_VALUES = ("expected a constant", "not known at import")

Executor = Callable[[ModelProto, Arrays], Arrays]


def by_interpreter(model: ModelProto, inputs: Arrays) -> Arrays:
    imported, rest = imported_with(model, inputs)
    return list(interpret(imported.module, rest, parameters=imported.parameters))


def by_compiler(model: ModelProto, inputs: Arrays, target: str | None = None) -> Arrays:
    imported, rest = imported_with(model, inputs)
    compiled = braid.compile(imported.module, parameters=imported.parameters, target=target)
    outputs: Any = compiled(*rest)
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def imported_with(model: ModelProto, inputs: Arrays) -> tuple[ImportedModel, Arrays]:
    """The model for these inputs, and those of them that are still inputs.

    The cases give axes, shapes and the like as inputs. Where shapes depend on them, all inputs
    but the first are fixed at import, or all.
    """
    names = input_names(model)
    given = dict(zip(names, inputs, strict=True))
    for kept in (names, names[:1], []):
        shapes = {name: given[name].shape for name in kept}
        constants = {name: given[name] for name in names if name not in kept}
        try:
            imported = import_onnx(model, shapes=shapes, constants=constants)
            return imported, [given[name] for name in kept]
        except UnsupportedError as error:
            depends_on_values = any(text in error.message for text in _DEPENDS_ON_VALUES)
            if not depends_on_values or not kept:
                raise
    raise AssertionError("the last attempt returns or raises")


EXECUTORS: dict[str, Executor] = {
    "compile": by_compiler,
    "gpu-emulated": lambda model, inputs: by_compiler(model, inputs, "gpu-emulated"),
    "interpret": by_interpreter,
    "iree": by_iree,
    "ort": by_onnx_runtime,
    "reference": by_reference,
    "torch-mlir": by_torch_mlir,
}
"""The executors by the name that the command line gives them."""
