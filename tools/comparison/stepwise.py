"""Comparing steps of a session with a reference that hands its own state on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from braid.runtime.state_session import StateSession
from braid.tools.comparison.layerwise import Difference, differences

Arrays = Mapping[str, NDArray[Any]]
Expect = Callable[[Arrays, Sequence[str]], tuple[Arrays, str]]
"""Returns the values of these names for inputs of the model, and the words for the reference."""


class ComparedSteps(NamedTuple):
    """The largest error of each value over all steps, the results of the last, and the reference
    in words.
    """

    found: list[Difference]
    actual: Arrays
    reference: str


def compare_steps(
    session: StateSession,
    steps: Iterable[Arrays],
    expect: Expect,
    order: Sequence[str],
) -> ComparedSteps:
    """Run a step on each of the inputs, at least one, and compare the values of `order`.

    The reference begins with the state of the session, and goes on from what it computes itself, so
    that errors that add up in the state are seen.
    """
    errors: dict[str, float] = {}
    state: Arrays = session.state
    actual, reference = dict[str, NDArray[Any]](), ""
    asked = list(dict.fromkeys((*order, *session.outputs.values())))
    for inputs in steps:
        state = state or session.first_state(inputs)
        expected, reference = expect({**inputs, **state}, asked)
        actual = session.run_named(inputs)
        actual |= {session.outputs[name]: array for name, array in session.state.items()}
        for each in differences(asked, actual, expected):
            errors[each.name] = max(each.error, errors.get(each.name, 0.0))
        state = {name: expected[output] for name, output in session.outputs.items()}
    return ComparedSteps([Difference(*each) for each in errors.items()], actual, reference)
