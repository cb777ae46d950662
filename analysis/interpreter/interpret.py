"""Running the functions of a module."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.interpreter import control_flow, scalars, tensors
from braid.analysis.interpreter.inputs import ordered_inputs
from braid.analysis.interpreter.machine import Handler, Machine, Observer
from braid.analysis.structure.parameter_expressions import (
    MOST_ELEMENTS,
    PREPARE,
    elements,
    is_leaf,
)
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.movement import BroadcastOp
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError

_OWN: dict[type[Operation], Handler] = {
    **tensors.HANDLERS,
    **scalars.HANDLERS,
    **control_flow.HANDLERS,
}


def _of_upstream() -> Mapping[type[Operation], Handler]:
    """Return the handlers of dialects that few models have, and that take long to import."""
    from braid.analysis.interpreter import linalg

    return linalg.HANDLERS


HANDLERS: tuple[Callable[[], Mapping[type[Operation], Handler]], ...] = (lambda: _OWN, _of_upstream)
"""Tables of handlers by op, each of which is imported when an op is not in those before it."""


@dataclass(frozen=True)
class Interpretation:
    """Results of a run, and the most bytes that values of ops took at once.

    `peak_bytes` counts every tensor from the op that computes it to its last use, as if each had
    a buffer of its own; inputs, parameters, constants and values inside `braid.fused` are not
    counted.
    """

    outputs: list[Array]
    peak_bytes: int


def interpret(
    module: ModuleOp,
    inputs: Sequence[Array] | Mapping[str, Array],
    *,
    function: str = "main",
    parameters: Mapping[str, Array] | None = None,
    observer: Observer | None = None,
) -> list[Array]:
    """Return the results of `function` in order.

    `inputs` are the arguments in order or by name (`braid.name`). `parameters` are the values of
    `braid.parameter` by key; those that `@prepare` makes need not be among them. `observer` is
    called after every op.
    Raises BraidError, with the location of the op, for inputs or parameters that do not fit, ops
    without known semantics, and values for which an op has no result.
    """
    return interpret_measured(
        module, inputs, function=function, parameters=parameters, observer=observer
    ).outputs


def interpret_measured(
    module: ModuleOp,
    inputs: Sequence[Array] | Mapping[str, Array],
    *,
    function: str = "main",
    parameters: Mapping[str, Array] | None = None,
    observer: Observer | None = None,
) -> Interpretation:
    """Interpret as `interpret` does, and return the results and the peak of memory."""
    functions = _functions(module)
    if function not in functions:
        raise BraidError(
            f"the module has no function '@{function}' with a body",
            location=source_location(module),
        )
    known: Mapping[str, Array] = {} if parameters is None else parameters
    if function != PREPARE:
        known = ChainMap(cast(dict[str, Array], known), evaluate_prepare(module, known))
    arguments = ordered_inputs(functions[function], inputs)
    machine = _machine(functions, known, observer)
    outputs = list(cast(Sequence[Array], machine.call(function, arguments)))
    return Interpretation(outputs, machine.memory.peak)


def evaluate_prepare(module: ModuleOp, parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of `@prepare` by key; empty if there is no such function."""
    functions = _functions(module)
    prepare = functions.get(PREPARE)
    if prepare is None or PREPARED_KEYS not in prepare.attributes:
        return {}
    _refuse_large(prepare)
    keys = cast(ArrayAttr[StringAttr], prepare.attributes[PREPARED_KEYS])
    values = _machine(functions, parameters, None).call(PREPARE, ())
    return {key.data: cast(Array, value) for key, value in zip(keys.data, values, strict=True)}


def _refuse_large(prepare: FuncOp) -> None:
    """Raise BraidError for an op that repeats weights, within a group too, to fill the memory."""
    ops = [op for op in prepare.walk() if isinstance(op, TensorOp)]
    weights = sum(sum(map(elements, op.results)) for op in ops if is_leaf(op))
    most = max(MOST_ELEMENTS, weights)
    for op in ops:
        count = sum(map(elements, op.results))
        if count > most and not isinstance(op, BroadcastOp):  # which is a view
            raise BraidError(
                f"'{op.name}' op makes {count} elements of weights when the model is compiled, "
                f"expected at most {most}",
                location=source_location(op),
                hint="make what the weights are repeated to an input of the model",
            )


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks}


def _machine(
    functions: Mapping[str, FuncOp], parameters: Mapping[str, Array], observer: Observer | None
) -> Machine:
    blocks = {name: function.body.block for name, function in functions.items()}
    return Machine(HANDLERS, blocks, parameters, observer)
