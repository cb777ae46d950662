"""The state of a model: said by the user, written on the module, and read for the manifest."""

from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.decided_sizes import decides_sizes, phases_of
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.state import declared_state, set_state, state_of
from braid.dialects.braid.variants import public_functions
from braid.driver.sources.signature import entry_of, signature_of
from braid.runtime.manifest import StateSpec
from braid.runtime.state_session import matched_state
from braid.support.errors import BraidError
from braid.support.option_names import option_text


def mark_state(module: ModuleOp, state: object) -> None:
    """Write on the function of a model which inputs take the values of which outputs.

    Without a `state` it is the state that the function declares, which is checked.

    Raises:
        BraidError: a name or pattern matches nothing, an input and its output differ in element
            type or rank, the model is compiled for given sizes, or data decide some.

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
            hint=f"leave out {option_text('state')}, and give the state to Model.session",
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
