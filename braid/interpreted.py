"""Models that the numpy interpreter runs."""

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.interpreter import interpret as interpret_function
from braid.driver.read_source import Constants, Dims, ModelSource, Shapes, read_source
from braid.driver.sources.signature import boundary_of, entry_of, signature_of
from braid.driver.sources.source_model import Parameters
from braid.passes.infrastructure.context import make_context
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

    Takes what `compile` takes; raises as it does.
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
    function = entry_of(model.module).sym_name.data
    at_sizes = lru_cache(_KEPT)(partial(_bound, model.module))

    def evaluate(arrays: Sequence[Array]) -> list[Array]:
        module = at_sizes(**dim_sizes(inputs, arrays))
        check = run_checker()

        def observe(op: Operation, operands: Sequence[Any], results: Sequence[Any]) -> None:
            check()

        return interpret_function(
            module, arrays, function=function, parameters=model.parameters, observer=observe
        )

    executor = InterpreterExecutor(inputs, outputs, evaluate)
    return Model(inputs, outputs, executor, boundary=boundary_of(model.module))


def _bound(module: ModuleOp, /, **sizes: int) -> ModuleOp:
    """Return a module at these sizes. Raises BraidError where an op is impossible at them."""
    if not sizes:
        return module
    copy = module.clone()
    bind_sizes(copy, sizes)
    return copy
