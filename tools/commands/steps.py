"""Runs that a command repeats: calls of a model, or steps of a session after one state."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from braid.runtime.binding import bind_inputs
from braid.runtime.manifest import TensorSpec
from braid.runtime.model import Model
from braid.runtime.state_session import StateSession
from braid.support.likely_sizes import LIKELY_STATE

Arrays = Mapping[str, NDArray[Any]]


class Runs:
    """Runs of a model on the same inputs; with a state, steps that all begin with the same one."""

    def __init__(self, model: Model, values: Arrays) -> None:
        """Run the model on these inputs."""
        self.streamed: Model | StateSession = model
        """The model and the arguments with which a stream of such runs is opened."""
        self.arrays = bind_inputs(model.inputs, (), values, drawn=model.drawn)
        self._run = model.run_numbers

    def begin(self) -> None:
        """Do the work before a run that is not part of it."""

    def run(self) -> Sequence[NDArray[Any]]:
        """Run, and return what the caller of the model gets."""
        return self._run(self.arrays)


class Steps(Runs):
    """Steps of a session after the same state, for which there is memory to append."""

    def __init__(
        self, model: Model, session: StateSession, values: Arrays, streamed: int = 0
    ) -> None:
        """Take the state, and the inputs that are no state, from these values.

        There is memory for as many new elements of a stream of steps, too.
        """
        self._before = {name: values[name] for name in session.outputs}
        session.reset(self._before)
        named = {name: each for name, each in values.items() if name not in self._before}
        session(named)
        after = session.state.values()
        longest = max((max(each.shape, default=0) for each in after), default=0)
        self._session = model.session(session.outputs, capacity=longest + streamed)
        self.streamed = self._session
        given = [spec for spec in model.inputs if spec.name not in self._before]
        self.arrays = bind_inputs(given, (), named, drawn=model.drawn)
        self._named = dict(zip((spec.name for spec in given), self.arrays, strict=True))
        self.begin()

    def begin(self) -> None:
        """Go back to the first state."""
        self._session.reset(self._before)

    def run(self) -> Sequence[NDArray[Any]]:
        """Run a step, and return the outputs that are no state."""
        return list(self._session.run_named(self._named).values())


def runs_of(
    model: Model, state: Mapping[str, str] | None, values: Arrays, streamed: int = 0
) -> Runs:
    """Return runs on these inputs: steps where the model has a state, with memory for `streamed`
    steps of a stream.

    Raises:
        BraidError: the model has no such inputs, or no such state.

    """
    session = session_of(model, state)
    return Runs(model, values) if session is None else Steps(model, session, values, streamed)


def session_of(model: Model, state: Mapping[str, str] | None) -> StateSession | None:
    """Return a session with the state that is given, or else that of the model; None without one.

    Raises:
        BraidError: the model has no such state.

    """
    return model.session(state or None) if state or model.state else None


def step_sizes(
    specs: Sequence[TensorSpec], state: Mapping[str, str] | None, length: int = LIKELY_STATE
) -> dict[str, int]:
    """Return likely sizes of a step: one new element after a state of this length.

    Dims of the state that no other input has are those along which it grows; dims of other inputs
    that no state has are new. The names of open dims are those of inputs alone.
    """
    kept = {name for spec in specs if spec.name in (state or ()) for name in spec.dims if name}
    given = {name for spec in specs if spec.name not in (state or ()) for name in spec.dims if name}
    if not kept:
        return {}
    return dict.fromkeys(given - kept, 1) | dict.fromkeys(kept - given, length)
