"""Models that the numpy interpreter runs."""

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.interpreter import interpret as interpret_function
from braid.dialects.braid.decided_sizes import decides_sizes, phase_outputs, phases_of
from braid.dialects.braid.ports import input_names, output_names
from braid.driver.read_source import Constants, Dims, ModelSource, Shapes, read_source
from braid.driver.sources.signature import (
    boundary_of,
    entry_of,
    signature_of,
    signature_of_function,
)
from braid.driver.sources.source_model import Parameters
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.runtime.buffers import dim_sizes
from braid.runtime.executors import InterpreterExecutor
from braid.runtime.interruption import run_checker
from braid.runtime.model import Model
from braid.support.checked_keywords import checks_arguments
from braid.support.forks import compiling

Array = NDArray[Any]

_KEPT = 4
"""Modules with numbers for sizes, of the latest sizes that an interpreted model ran at."""


@compiling()
@checks_arguments("braid.interpret")
def interpret(
    source: ModelSource,
    *,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    constants: Constants | None = None,
    parameters: Parameters | str | os.PathLike[str] | None = None,
) -> Model:
    """Return the model to be run by the numpy interpreter: slow, and the reference.

    Open dims take any size, as those of compiled models do.

    Takes the arguments of `compile`, and raises as it does.
    """
    model = read_source(
        make_context(),
        source,
        shapes=shapes,
        dims=dims,
        constants=constants,
        parameters=parameters,
    )
    inputs, outputs = signature_of(model.module)
    if decides_sizes(model.module):
        run_pipeline(make_context(), model.module, "inline,split-phases", verify=False)
    run = _Functions(model.module, model.parameters)
    phases = phases_of(model.module)

    def evaluate(arrays: Sequence[Array]) -> list[Array]:
        if not phases:
            return run(entry_of(model.module), arrays)
        values = dict(zip(input_names(phases[0]), arrays, strict=True))
        for phase in phases:
            results = run(phase, [values[name] for name in input_names(phase)])
            values |= zip(output_names(phase), results, strict=True)
        return [values[value] for _, value in phase_outputs(model.module)]

    boundary = boundary_of(model.module)
    executor = InterpreterExecutor(inputs, outputs, evaluate)
    return Model(inputs, outputs, executor, boundary=boundary)


class _Functions:
    """Interprets functions of a module at the sizes of their arguments."""

    def __init__(self, module: ModuleOp, parameters: Parameters) -> None:
        self._parameters = parameters
        self._at_sizes = lru_cache(_KEPT)(partial(_bound, module))

    def __call__(self, function: FuncOp, arrays: Sequence[Array]) -> list[Array]:
        inputs, _ = signature_of_function(function)
        module = self._at_sizes(**dim_sizes(inputs, arrays))
        check = run_checker()

        def observe(op: Operation, operands: Sequence[Any], results: Sequence[Any]) -> None:
            check()

        return interpret_function(
            module,
            arrays,
            function=function.sym_name.data,
            parameters=self._parameters,
            observer=observe,
        )


def _bound(module: ModuleOp, /, **sizes: int) -> ModuleOp:
    """Return a module at these sizes. Raises BraidError where an op is impossible at them."""
    if not sizes:
        return module
    copy = module.clone()
    bind_sizes(copy, sizes)
    return copy
