"""Ways to run a case: braid's interpreter, braid's compiler, and peers.

An executor gets a model and the inputs of one data set in order, and gives the outputs in order.
Executors raise `UnsupportedError` for cases that they declare as unsupported.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

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
from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.sizes import assumptions_of, symbols_attribute, symbols_used, value_sizes
from braid.driver.sources.signature import boundary_of, signature_of
from braid.frontends.onnx import ImportedModel, import_onnx
from braid.runtime.binding import bind_inputs
from braid.runtime.boundary import BoundaryCall, drawn_inputs
from braid.support.errors import UnsupportedError
from braid.support.sizes.assumptions import Assumed

_DEPENDS_ON_VALUES = ("expected a constant", "not known at import")

Executor = Callable[[ModelProto, Arrays], Arrays]


def by_interpreter(model: ModelProto, inputs: Arrays) -> Arrays:
    imported, rest = imported_with(model, inputs)
    return interpreted(imported, rest)


def interpreted(imported: ImportedModel, inputs: Arrays) -> Arrays:
    """Interpret a module; text is converted to its numbers, and results back to text."""
    boundary = boundary_of(imported.module)
    call = BoundaryCall(boundary)
    takes, gives = signature_of(imported.module)
    given = bind_inputs(takes, inputs, {}, boundary.inputs, drawn_inputs(boundary))
    numbers = call.encoded(takes, given)
    results = interpret(imported.module, numbers, parameters=imported.parameters)
    return call.decoded(gives, results)


def by_open_interpreter(model: ModelProto, inputs: Arrays) -> Arrays:
    """Run as `by_interpreter`, but import with all dims of all inputs open."""
    opened, _ = with_open_dims(model, inputs)
    imported, rest = imported_with(opened, inputs, keep_open=True)
    sizes_in(imported.module, rest)
    interpreted = braid.interpret(imported.module, parameters=imported.parameters)
    return interpreted.run(rest)


def by_open_compiler(model: ModelProto, inputs: Arrays) -> Arrays:
    """Run as `by_compiler`, with code for all sizes, where the given ones are likely.

    Dims of one element are not open: broadcasts are decided at compile time.
    """
    opened, sizes = with_open_dims(model, inputs, least=2)
    imported, rest = imported_with(opened, inputs, keep_open=True)
    sizes |= sizes_in(imported.module, rest)
    for function in imported.module.ops:
        known = dict(assumptions_of(function).symbols)
        for name in symbols_used(imported.module) & sizes.keys():
            least = known.get(name, Assumed())
            known[name] = replace(least, likely=(max(sizes[name], least.minimum),))
        function.attributes[SYMBOLS] = symbols_attribute(known)
    compiled = braid.compile(imported.module, parameters=imported.parameters)
    outputs: Any = compiled(*rest)
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def sizes_in(module: ModuleOp, inputs: Arrays) -> dict[str, int]:
    """Return the sizes that elements of inputs are. Raises UnsupportedError for negative ones."""
    sizes: dict[str, int] = {}
    for function in (op for op in module.ops if isinstance(op, FuncOp)):
        for names, array in zip(value_sizes(function), inputs, strict=False):
            sizes |= {name: int(array.reshape(-1)[n]) for n, name in enumerate(names)}
    if min(sizes.values(), default=0) < 0:
        raise UnsupportedError(f"{sizes} are {_DEPENDS_ON_VALUES[0]}, since one is negative")
    return sizes


def with_open_dims(
    model: ModelProto, inputs: Arrays, least: int = 0
) -> tuple[ModelProto, dict[str, int]]:
    """Return the model with a name for each dim of each input, and the sizes in these inputs.

    Dims that are shorter than `least` keep their extents.
    """
    opened, sizes = ModelProto(), dict[str, int]()
    opened.CopyFrom(model)
    by_name = dict(zip(input_names(model), inputs, strict=True))
    for value in opened.graph.input:
        if value.name not in by_name:
            continue
        for position, dim in enumerate(value.type.tensor_type.shape.dim):
            size = by_name[value.name].shape[position]
            if size >= least:
                dim.dim_param = f"{value.name}_{position}"
                sizes[dim.dim_param] = size
    return opened, sizes


def by_compiler(model: ModelProto, inputs: Arrays, target: str | None = None) -> Arrays:
    imported, rest = imported_with(model, inputs)
    compiled = braid.compile(imported.module, parameters=imported.parameters, target=target)
    outputs: Any = compiled(*rest)
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def imported_with(
    model: ModelProto, inputs: Arrays, *, keep_open: bool = False
) -> tuple[ImportedModel, Arrays]:
    """Return the model for these inputs, and those of them that are still inputs.

    The cases give axes, shapes and the like as inputs. If shapes depend on them, all inputs except
    the first, or all, are fixed at import. With `keep_open`, no shape is.
    """
    names = input_names(model)
    given = dict(zip(names, inputs, strict=True))
    for kept in (names, names[:1], []):
        shapes = {} if keep_open else {name: given[name].shape for name in kept}
        constants = {name: given[name] for name in names if name not in kept}
        try:
            imported = import_onnx(model, shapes=shapes, constants=constants, keep_open=keep_open)
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
    "open": by_open_compiler,
    "open-interpret": by_open_interpreter,
    "ort": by_onnx_runtime,
    "reference": by_reference,
    "torch-mlir": by_torch_mlir,
}
"""The executors by the name that the command line gives them."""
