"""Calls of a model that hand its state on: outputs of one call are inputs of the next."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.binding import bind_inputs
from braid.runtime.buffers import check_input, host_arrays
from braid.runtime.device_arrays import Buffer
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.growing_state import GrowingState, Growth
from braid.runtime.manifest import Boundary, StateSpec, TensorSpec
from braid.runtime.request_stream import InterpretedStream
from braid.runtime.state_names import matched_state
from braid.runtime.state_order import as_in_code, as_in_model, orders
from braid.runtime.stream import Requests, Stream
from braid.runtime.torch_tensors import any_tensor, tensor_of
from braid.support.checked_keywords import checks_methods
from braid.support.errors import BraidError, check_kinds

Array = NDArray[Any]
State: TypeAlias = Array | GrowingState
"""The state of an input in a session: an array, or rows to which a run appends."""

OutputsFor: TypeAlias = Callable[[Sequence[tuple[int, ...]]], Sequence[Array]]


class Runnable(Protocol):
    """A model as a session needs it."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def drawn(self) -> frozenset[str]:
        """Return the inputs that are drawn where a call leaves them out."""
        ...

    @property
    def boundary(self) -> Boundary:
        """Return which inputs and outputs are text, mappings or random keys, by name."""
        ...

    @property
    def appended_state(self) -> Mapping[str, StateSpec]:
        """Return the states that code appends to in place, by the names of inputs."""
        ...

    def run_named(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run on inputs by name and return the outputs by name."""
        ...

    def run_growing(self, inputs: Sequence[Buffer], outputs_for: OutputsFor) -> list[Array]:
        """Run on inputs as code has them, into the outputs for these shapes."""
        ...


@checks_methods("StateSession")
class StateSession:
    """A model with state, such as a decoder with its cache of keys and values.

    The state begins with zeros, and with no elements along dims that no other input tells: a cache
    that grows is empty. Elements of a state are never written again, so that a fork shares them. A
    session serves one thread at a time; sessions of one model are independent of each other.
    """

    def __init__(self, model: Runnable, state: Mapping[str, str], capacity: int = 0) -> None:
        """Let outputs of `model` be its next inputs; `Model.session` describes the rest."""
        self._model = model
        self._capacity = capacity
        self._outputs = matched_state(model.inputs, model.outputs, state)
        appended = model.appended_state.items()
        self._growing = {n: own for n, own in appended if self._outputs.get(n) == own.output}
        outputs = {spec.name: spec for spec in model.outputs}
        self._outermost = {
            spec.name: _outermost(spec.shape, self._growing[spec.name].order)
            for spec in model.inputs
            if spec.name in self._growing
            and not _is_same_shape(spec, outputs[self._outputs[spec.name]])
        }
        self._orders = orders([own for _, own in appended])
        self._state: dict[str, State] = {}
        self._given = [spec for spec in model.inputs if spec.name not in self._outputs]
        taken = set(self._outputs.values())
        self._returned = [spec.name for spec in model.outputs if spec.name not in taken]

    def __call__(self, /, *arguments: object, **named: object) -> Any:
        """Run the model on the inputs that are no state, and keep the new state.

        Inputs are given as in a call of the model, without the state; the result is what the model
        returns without the state: an array, or a tuple where there are several outputs.

        Raises:
            BraidError: as a call of the model; the state is then what it was before.

        """
        inputs = self._named(arguments, named)
        found = self._step(inputs)
        if self._growing and any_tensor(inputs.values()):  # as calls of the model return them
            found = [tensor_of(np.asarray(result)) for result in found]
        return found[0] if len(found) == 1 else tuple(found)

    def run_named(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run a step on inputs by name and return the outputs by name; raises as `__call__`."""
        results = self._step(self._named((inputs,), {}))
        return dict(zip(self._returned, map(np.asarray, results), strict=True))

    def stream(
        self, requests: Requests, *, return_errors: bool = False, copy: bool = True
    ) -> Stream:
        """Run a step for each of several requests: `for y in session.stream(xs)`.

        Requests and results are as those of `Model.stream`, without the state. Each step needs the
        state of the previous one, so steps never overlap: a request is read, and its step runs,
        when its result is requested. A request that fails leaves the state as it was.

        Raises:
            BraidError: inputs or outputs of the model are text or mappings.

        """
        check_kinds(flags={"return_errors": return_errors, "copy": copy})
        if self._model.boundary:
            raise BraidError(
                "a stream takes and gives arrays of numbers, and the model has text or mappings",
                hint="call the session once for each request",
            )

        def bind(arguments: tuple[object, ...], named: Mapping[str, object]) -> list[Buffer]:
            return bind_inputs(self._given, arguments, named, drawn=self._model.drawn)

        def step(inputs: Sequence[Array]) -> list[Array]:
            return self._step(dict(zip(self._names(), inputs, strict=True)))

        steps = InterpretedStream(step)
        return Stream(steps, requests, bind, return_errors=return_errors, copy=copy)

    def _step(self, inputs: Mapping[str, object]) -> list[Any]:
        """Run the model, keep the new state, and return the other outputs."""
        state = self._state
        if not state:
            first = self.first_state(inputs)
            state = {name: self._kept(name, array) for name, array in first.items()}
        results = self._appended(inputs, state) if self._growing else self._handed(inputs, state)
        return [results[name] for name in self._returned]

    def _handed(
        self, inputs: Mapping[str, object], state: Mapping[str, State]
    ) -> Mapping[str, object]:
        """Run the model, keep the new state, and return all outputs by name."""
        results = self._model.run_named({**inputs, **state})
        self._state = {name: np.asarray(results[self._outputs[name]]) for name in self._outputs}
        return results

    def _appended(
        self, inputs: Mapping[str, object], state: Mapping[str, State]
    ) -> Mapping[str, object]:
        """Do the work of `_handed` for states that grow in place."""
        given = dict(
            zip(
                self._names(),
                bind_inputs(self._given, (), inputs, drawn=self._model.drawn),
                strict=True,
            )
        )
        growth, following = Growth(), dict[str, State]()
        of_output = {self._outputs[name]: name for name in self._growing}

        def outputs_for(shapes: Sequence[tuple[int, ...]]) -> list[Array]:
            made: list[Array] = []
            for spec, shape in zip(self._model.outputs, shapes, strict=True):
                before = state[of_output[spec.name]] if spec.name in of_output else None
                if isinstance(before, GrowingState):
                    after = growth.after(before, shape)
                    following[of_output[spec.name]] = after
                    made.append(after.array)
                else:
                    made.append(np.empty(shape, numpy_dtype(spec.dtype)))
            return made

        try:
            buffers = [self._buffer(given, state, spec.name) for spec in self._model.inputs]
            found = self._model.run_growing(buffers, outputs_for)
        except BaseException:
            growth.undo()
            raise
        results = {
            spec.name: as_in_model(array, self._orders.get(spec.name, ()))
            for spec, array in zip(self._model.outputs, found, strict=True)
        }
        own = (name for name in self._outputs if name not in self._growing)
        self._state = {**following, **{name: results[self._outputs[name]] for name in own}}
        return results

    def _buffer(self, given: Mapping[str, Buffer], state: Mapping[str, State], name: str) -> Buffer:
        """Return an input as code takes it."""
        own = state.get(name)
        if isinstance(own, GrowingState):
            return own.array
        array = given[name] if own is None else own
        order = self._orders.get(name, ())
        return as_in_code(array, order) if isinstance(array, np.ndarray) else array

    def _names(self) -> list[str]:
        return [spec.name for spec in self._given]

    @property
    def state(self) -> Mapping[str, Array]:
        """Return the arrays of the state by the name of the input; empty before the first call.

        They cannot be written, since forks and the next call share their memory.
        """
        found = {name: self._as_array(name, own) for name, own in self._state.items()}
        for array in found.values():
            array.flags.writeable = False
        return found

    def _as_array(self, name: str, state: State) -> Array:
        if isinstance(state, GrowingState):
            return as_in_model(state.array, self._growing[name].order)
        return state.view()

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return the output whose value each input of the state takes, by their names."""
        return dict(self._outputs)

    def reset(self, state: Mapping[str, object] | None = None) -> None:
        """Begin anew: with an empty state, or with arrays by the names of all inputs of the state.

        Raises:
            BraidError: an array is missing, one is given for an input that is no state, or one has
            another dtype or rank.

        """
        if not isinstance(cast(object, state), Mapping | None):
            raise BraidError(
                f"the state is a {type(state).__name__}, expected arrays by the names of inputs",
                hint=f"such as {{'{next(iter(self._outputs))}': array}}",
            )
        given = dict(state or {})
        unknown = [name for name in given if name not in self._outputs]
        missing = [name for name in self._outputs if name not in given] if given else []
        if unknown or missing:
            what = f"'{unknown[0]}' is no state" if unknown else f"'{missing[0]}' is missing"
            raise BraidError(
                f"the state cannot be reset: {what}",
                hint=f"the inputs of the state are {', '.join(sorted(self._outputs))}",
            )
        specs = [spec for spec in self._model.inputs if spec.name in given]
        arrays = host_arrays(bind_inputs(specs, (), given), "a session")
        self._state = {
            spec.name: self._kept(spec.name, check_input(spec, np.array(array)))
            for spec, array in zip(specs, arrays, strict=True)
        }

    def fork(self) -> "StateSession":
        """Return a session that goes on from this state, as beams of a search do.

        Nothing is copied until both continue, and then only the state of the second one.
        """
        other = StateSession(self._model, self._outputs, self._capacity)
        other._state = dict(self._state)
        return other

    def _kept(self, name: str, array: Array) -> State:
        """Return an array as a session keeps it."""
        if name not in self._growing:
            return array
        stored = as_in_code(array, self._growing[name].order)
        if name not in self._outermost:  # nothing is ever appended
            return GrowingState.of(stored, 0)
        one = math.prod(stored.shape[self._outermost[name] + 1 :])  # those before it are 1
        return GrowingState.of(stored, self._capacity * one)

    def _named(self, arguments: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        """Return the inputs of a call by name."""
        placed: Mapping[str, object]
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            placed = cast(Mapping[str, object], arguments[0])
        elif len(arguments) > len(self._given):
            raise BraidError(
                f"got {len(arguments)} inputs, the model has {len(self._given)} beside its state"
            )
        else:
            placed = dict(zip(self._names(), arguments, strict=False))
        if twice := [name for name in named if name in placed]:
            raise BraidError(f"input '{twice[0]}' is given twice", hint="give it once")
        given = {**placed, **named}
        if kept := sorted(given.keys() & self._outputs.keys()):
            raise BraidError(
                f"input '{kept[0]}' is part of the state, which the session keeps",
                hint="session.reset(state) sets the state",
            )
        return given

    def first_state(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Return the state before a first call on these inputs by name: zeros, of shapes that fit
        them.
        """
        sizes: dict[str, int] = {}
        for spec in self._given:
            shape = _shape_of(inputs.get(spec.name, ()))
            sizes |= {n: size for n, size in zip(spec.dims, shape, strict=False) if n}
        return {
            spec.name: np.zeros(_shape(spec, sizes), numpy_dtype(spec.dtype))
            for spec in self._model.inputs
            if spec.name in self._outputs
        }


def _shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of the value for an input, none for lists that are no array."""
    try:
        return cast(tuple[int, ...], np.shape(value))
    except ValueError:
        return ()  # the call reports the error


def _outermost(shape: Sequence[int], order: Sequence[int]) -> int:
    """Return the dim, as code has it, along which a state of a model's `shape` is appended to: the
    first that is not 1.
    """
    sizes = [shape[dim] for dim in order] if order else shape
    return next((dim for dim, size in enumerate(sizes) if size != 1), 0)


def _is_same_shape(one: TensorSpec, other: TensorSpec) -> bool:
    """Return whether two tensors surely have one shape: their open dims have the same names."""
    names = (one.dims or ("",) * len(one.shape), other.dims or ("",) * len(other.shape))
    dims = zip(one.shape, other.shape, *names, strict=True)
    return all(a == b and n == m and (a >= 0 or n) for a, b, n, m in dims)


def _shape(spec: TensorSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    names = spec.dims or ("",) * len(spec.shape)
    return tuple(
        sizes.get(name, 0) if size < 0 else size
        for size, name in zip(spec.shape, names, strict=True)
    )
