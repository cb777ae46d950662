"""The state of a model: given by the user, written on the module, and read for the manifest."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.decided_sizes import decides_sizes, phases_of
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.sizes import assumptions_of
from braid.dialects.braid.state import declared_state, set_state, state_of
from braid.dialects.braid.variants import public_functions
from braid.driver.sources.signature import entry_of, signature_of
from braid.runtime.manifest import StateSpec
from braid.runtime.state_names import matched_state, unfit_state
from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.support.sizes.assumptions import Answer, Assumed, Assumptions
from braid.support.sizes.expression import Extent, Size, Symbol, atom_alone, symbols_of


def mark_state(module: ModuleOp, state: object) -> None:
    """Write on the function of a model which inputs take the values of which outputs.

    Without a `state` it is the state that the function declares, which is checked.

    Raises:
        BraidError: a name or pattern matches nothing, an input and its output differ in element
            type or rank, or can never have the same shape, the model is compiled for given sizes,
            or data decide some.

    """
    declared = {
        n: own for each in public_functions(module) for n, own in declared_state(each).items()
    }
    state = state or declared
    if not state:
        return
    if decides_sizes(module):
        raise BraidError(
            "data decide sizes of the model, which then cannot append to a state in place",
            hint=f"leave out {option_text('state')}, and give the state to Model.session"
            + _fixing_hint(module),
        )
    if len(public_functions(module)) > 1:
        raise BraidError(
            "a model that is compiled for given sizes keeps no state that grows",
            hint=f"leave out {option_text('shape_buckets')} and {option_text('shape_bounds')}",
        )
    inputs, outputs = signature_of(module)
    numbers = {spec.name: number for number, spec in enumerate(inputs)}
    found = matched_state(inputs, outputs, state)
    set_state(entry_of(module), {numbers[name]: output for name, output in found.items()})
    _check_extents(entry_of(module))


def _fixing_hint(module: ModuleOp) -> str:
    """Return how to fix the inputs that may choose between branches, as of merged decoders."""
    inputs, _ = signature_of(module)
    flags = [spec.name for spec in inputs if spec.dtype == "bool" and math.prod(spec.shape) == 1]
    if not flags:
        return ""
    return f", or choose a branch with {option_text('constants', dict.fromkeys(flags, 1))}"


def _check_extents(function: FuncOp) -> None:
    """Raise BraidError where shapes of outputs are none that the state can have in a next run."""
    end = function.body.block.last_op
    assert end is not None
    names, results = input_names(function), output_names(function)
    assumed = _with_something_new(function)
    told: dict[Symbol, tuple[Extent, str]] = {}
    for port in state_of(function):
        before = extents_of(function.body.block.args[port.input])
        after = extents_of(end.operands[port.output])
        said = f"'{results[port.output]}' of shape {_text(after)}"
        for own, new in zip(before, after, strict=True):
            atom = atom_alone(own) if isinstance(own, Size) else None
            other, also = told.get(atom, (new, "")) if isinstance(atom, Symbol) else (own, "")
            if isinstance(atom, Symbol):
                told[atom] = new, f" where '{atom.name}' is that of output {said}, too"
            if not _may_be_equal(own, new, assumed) or assumed.equal(other, new) is Answer.NO:
                raise unfit_state(f"'{names[port.input]}' of shape {_text(before)}", said + also)


def _with_something_new(function: FuncOp) -> Assumptions:
    """Return what is assumed of sizes where each input that is no state has elements.

    A state that fits only where nothing is new says nothing of a model.
    """
    kept = {port.input for port in state_of(function)}
    given = (arg for index, arg in enumerate(function.body.block.args) if index not in kept)
    sizes = (size for arg in given for size in extents_of(arg))
    assumed = assumptions_of(function)
    for name in symbols_of(*sizes):
        own = assumed.by_name.get(name, Assumed())
        if own.minimum < 1 and (own.maximum is None or own.maximum >= own.multiple_of):
            assumed = assumed.with_symbol(name, replace(own, minimum=1, likely=()))
    return assumed


def _may_be_equal(before: Extent, after: Extent, assumed: Assumptions) -> bool:
    """Return whether a size of one run may be another size of the run before it."""
    least, most = assumed.bounds(before)
    lower, upper = assumed.bounds(after)
    return (most is None or lower is None or lower <= most) and (
        upper is None or least is None or least <= upper
    )


def _text(extents: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, extents))})"


def state_specs(module: ModuleOp) -> tuple[StateSpec, ...]:
    """Return the state of a compiled model as its manifest has it."""
    if phases_of(module):
        return ()
    first = public_functions(module)[0]
    names, results = input_names(first), output_names(first)
    return tuple(
        StateSpec(names[own.input], results[own.output], own.order, own.appended)
        for own in state_of(first)
    )
