"""Runs that a command repeats: calls of a model, or steps of a session after one state."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from numpy.typing import NDArray

from braid.runtime.binding import bind_inputs
from braid.runtime.device_arrays import Buffer
from braid.runtime.model import Model
from braid.runtime.state_session import StateSession
from braid.tools.commands.step_inputs import StepInputs

Arrays = Mapping[str, NDArray[Any]]

_AHEAD = 2
"""Requests of a stream of steps beside those that are measured."""


class Runs:
    """Runs of a model on the same inputs; with a state, steps that all begin with the same one."""

    def __init__(self, model: Model, values: Arrays) -> None:
        """Run the model on these inputs."""
        self.streamed: Model | StateSession = model
        """The model and the arguments with which a stream of such runs is opened."""
        self.arrays = bind_inputs(model.inputs, (), values, drawn=model.drawn)
        self._run = model.run_numbers

    def requests(self) -> Iterable[Sequence[Buffer]]:
        """Return the requests of a stream of such runs, as many as it may take."""
        return repeat(self.arrays)

    def begin(self) -> None:
        """Do the work before a run that is not part of it."""

    def run(self) -> Sequence[NDArray[Any]]:
        """Run, and return what the caller of the model gets."""
        return self._run(self.arrays)


class Steps(Runs):
    """Steps of a session after the same state, for which there is memory to append."""

    def __init__(
        self, model: Model, inputs: StepInputs, session: StateSession, values: Arrays, streamed: int
    ) -> None:
        """Take the state, and the inputs that are no state, from these values.

        There is memory for as many new elements of a stream of steps, too, whose `inputs` grow.
        """
        self._before = {name: values[name] for name in session.outputs}
        session.reset(self._before)
        named = {name: each for name, each in values.items() if name not in self._before}
        session(named)
        after = session.state.values()
        longest = max((max(each.shape, default=0) for each in after), default=0)
        self._session = model.session(session.outputs, capacity=longest + streamed)
        self.streamed = self._session
        self._specs = [spec for spec in model.inputs if spec.name not in self._before]
        self._drawn = model.drawn
        self.arrays = bind_inputs(self._specs, (), named, drawn=model.drawn)
        self._named = named
        self._requests = self._growing(inputs, streamed + _AHEAD) if inputs.following else None
        self.begin()

    def _growing(self, inputs: StepInputs, count: int) -> Sequence[Sequence[Buffer]]:
        """Return the inputs of steps that go on from each other, which are run for that."""
        self.begin()
        named, found = self._named, [self.arrays]
        for _ in range(count - 1):
            self._session(named)
            named = inputs.after(named, self._session.state)
            found.append(bind_inputs(self._specs, (), named, drawn=self._drawn))
        return found

    def requests(self) -> Iterable[Sequence[Buffer]]:
        """Return the requests of a stream of steps, of which those for which memory is there."""
        return repeat(self.arrays) if self._requests is None else self._requests

    def begin(self) -> None:
        """Go back to the first state."""
        self._session.reset(self._before)

    def run(self) -> Sequence[NDArray[Any]]:
        """Run a step, and return the outputs that are no state."""
        return list(self._session.run_named(self._named).values())


def runs_of(
    model: Model,
    inputs: StepInputs,
    session: StateSession | None,
    values: Arrays,
    streamed: int = 0,
) -> Runs:
    """Return runs on these values of inputs: steps of a session where there is one, with memory for
    `streamed` steps of a stream.

    Raises:
        BraidError: the model has no such inputs, or no such state.

    """
    if session is None:
        return Runs(model, values)
    return Steps(model, inputs, session, values, streamed)


def session_of(model: Model, state: Mapping[str, str] | None) -> StateSession | None:
    """Return a session with the given state, or else the model's state; None without one.

    Raises:
        BraidError: the model has no such state.

    """
    return model.session(state or None) if state or model.state else None
