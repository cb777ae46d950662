"""Models that the numpy interpreter runs."""

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from braid.analysis.interpreter import interpret as interpret_function
from braid.driver.read_source import Constants, Dims, ModelSource, Shapes, read_source
from braid.driver.sources.signature import entry_of, signature_of
from braid.driver.sources.source_model import Parameters
from braid.passes.infrastructure.context import make_context
from braid.runtime.executors import InterpreterExecutor
from braid.runtime.model import Model
from braid.support.forks import compiling

Array = NDArray[Any]


@compiling()
def interpret(
    source: ModelSource,
    *,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    constants: Constants | None = None,
    parameters: Parameters | str | os.PathLike[str] | None = None,
) -> Model:
    """Return the model to be run by the numpy interpreter: slow, and the reference.

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

    def evaluate(arrays: Sequence[Array]) -> list[Array]:
        return interpret_function(
            model.module, arrays, function=function, parameters=model.parameters
        )

    return Model(inputs, outputs, InterpreterExecutor(inputs, outputs, evaluate))
