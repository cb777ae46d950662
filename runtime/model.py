"""Models that can be called: compiled, loaded from an artifact, or interpreted."""

import operator
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from numbers import Integral
from pickle import PickleBuffer
from types import TracebackType
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, cast, overload

from numpy.typing import NDArray

from braid.runtime.artifact import Artifact, artifact_of_bytes, read_artifact
from braid.runtime.binding import bind_inputs, bind_outputs, in_order, outputs_in_order
from braid.runtime.boundary import BoundaryCall, drawn_inputs
from braid.runtime.device_arrays import Buffer
from braid.runtime.device_plugins import emulating, register_plugins
from braid.runtime.device_reports import (
    inputs_per_second,
    resources_by_device,
    seconds_by_device,
)
from braid.runtime.executors import (
    ElsewhereExecutor,
    Executor,
    NativeExecutor,
)
from braid.runtime.manifest import (
    NO_KERNELS,
    NUMBERS_ALONE,
    Boundary,
    DeviceCodeSpec,
    RecordCount,
    SizeCheckSpec,
    StateSpec,
    TensorSpec,
)
from braid.runtime.model_html import model_html
from braid.runtime.native import NativeModel
from braid.runtime.package import KeptArtifact, Package
from braid.runtime.profile_entries import ProfileEntry
from braid.runtime.signature_text import signature_text
from braid.runtime.state_order import in_model_order, shown_sizes
from braid.runtime.state_session import OutputsFor, StateSession
from braid.runtime.stream import STREAM_DEADLINE, Requests, Stream, check_deadline
from braid.runtime.torch_tensors import any_tensor, tensor_of, written
from braid.runtime.traces import TRACED_EVENTS, HardwareCounters, Trace
from braid.support.checked_keywords import checked_path, checks_arguments, checks_methods
from braid.support.errors import BraidError, check_kinds, check_threads
from braid.support.memory_report import MemoryReport
from braid.support.option_names import option_text
from braid.support.shared_objects import need_libraries
from braid.support.size_counts import SizeCount

Array = NDArray[Any]
_Plain: TypeAlias = Array | float
"""Results for numpy inputs are numpy arrays, for PyTorch tensors they are tensors."""
_MOST_CAPACITY = 2**40
"""The largest number of elements that a session may have memory for at first, as in C."""
_PICKLED = "<pickled model>"
"""Stands for the path of an artifact that came in a pickle."""


@checks_methods("Model")
class Model:
    """A model that can be called, from any number of threads at once.

    `inputs` and `outputs` describe the tensors by name, dtype and shape; `arena_bytes` is the
    memory for intermediates that each thread that calls the model takes, 0 where that depends on
    the sizes of the inputs. Such memory grows with the sizes; `trim` gives it back.
    """

    def __init__(
        self,
        inputs: tuple[TensorSpec, ...],
        outputs: tuple[TensorSpec, ...],
        executor: Executor,
        arena_bytes: int = 0,
        package: Package | Artifact | KeptArtifact | None = None,
        boundary: Boundary = NUMBERS_ALONE,
    ) -> None:
        """Put a model together; users call `braid.compile`, `interpret` or `load`."""
        self.inputs = inputs
        self.outputs = outputs
        self.arena_bytes = arena_bytes
        self._manifest = None if package is None else package.manifest
        self._boundary = boundary if package is None else package.manifest.boundary
        self._drawn = drawn_inputs(self._boundary)
        self._no_arrays = self._boundary.inputs.keys() - self._drawn
        self._state: _Open | None = _Open(executor, package)

    def __repr__(self) -> str:
        sizes = () if self._manifest is None else shown_sizes(self._manifest)
        inputs, outputs = signature_text(self.inputs), signature_text(self.outputs, sizes)
        return f"<braid.Model ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        """Return the tables that a notebook shows."""
        return model_html(self.inputs, self.outputs, self._manifest)

    @overload
    def __call__(
        self, /, *arguments: _Plain | Mapping[str, _Plain], out: None = None, **named: _Plain
    ) -> Array | tuple[Array, ...]: ...

    @overload
    def __call__(self, /, *arguments: object, out: object = None, **named: object) -> Any: ...

    def __call__(self, /, *arguments: object, out: object = None, **named: object) -> Any:
        """Run the model.

        Inputs come by position, by name (`model({"input.1": x})`, `model(x=x)`), or both; each is
        a numpy array, an object with `__dlpack__` or `__array__` in this computer's memory, or a
        number; or an object with `__dlpack__` in the memory of the GPU that uses it, which is not
        copied.
        The result is one array, or a tuple in the model's order where there are several outputs.
        Where an input is a tensor of PyTorch, results are such, in this computer's memory; they
        have no gradient. `out` gives the buffers for the outputs: an array, a sequence, or a
        mapping by name; they are numpy's or PyTorch's, or in the memory of the GPU that makes them,
        and are what is returned. An input may be one of them, as in numpy, though not on a GPU; two
        outputs must not share memory. When the call returns, all work on GPUs has ended.

        Raises:
            BraidError: a wrong name, number, dtype or shape, or outputs that share memory.

        """
        tensors = any_tensor((*arguments, *named.values()))
        results = self._run(self._bound(arguments, named), out, tensors)
        return results[0] if len(results) == 1 else tuple(results)

    @overload
    def run(self, inputs: Sequence[_Plain], out: None = None) -> list[Array]: ...

    @overload
    def run(self, inputs: Sequence[object], out: object = None) -> list[Any]: ...

    def run(self, inputs: Sequence[object], out: object = None) -> list[Any]:
        """Run on a sequence of inputs in the model's order; always return a list of the outputs.

        Raises:
            BraidError: as `__call__`, or `inputs` are no sequence.

        """
        given = in_order("inputs", inputs)
        return self._run(self._bound(given, {}), out, any_tensor(given))

    def _bound(self, arguments: Sequence[object], named: Mapping[str, object]) -> list[Buffer]:
        return bind_inputs(self.inputs, arguments, named, self._no_arrays, self._drawn)

    def _run_with_text(self, inputs: Sequence[object], out: object) -> list[Any]:
        """Run a model with inputs or outputs that are text or mappings."""
        if out is not None and self._boundary.outputs:
            names = ", ".join(f"'{name}'" for name in self._boundary.outputs)
            raise BraidError(
                f"buffers are given for outputs, but {names} of the model are no arrays of numbers",
                hint="leave out out=, and take what the call returns",
            )
        call = BoundaryCall(self._boundary)
        arrays = call.encoded(self.inputs, inputs)
        buffers = None if out is None else outputs_in_order(self.outputs, out)
        given = None if buffers is None else bind_outputs(self.outputs, buffers)
        return call.decoded(self.outputs, self._open().executor.run(arrays, given))

    def _run(self, inputs: Sequence[Buffer], out: object, tensors: bool) -> list[Array]:
        """Run on arrays; what is returned are tensors of PyTorch if `tensors`, or what is given."""
        if self._boundary:
            return self._run_with_text(inputs, out)
        if out is None:
            results = self._open().executor.run(inputs, None)
            return list(map(tensor_of, results)) if tensors else results
        given = outputs_in_order(self.outputs, out)
        results = self._open().executor.run(inputs, bind_outputs(self.outputs, given))
        return list(map(written, given, results))

    def run_named(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run on inputs by name and return the outputs by name; raises as `__call__` does."""
        if not isinstance(cast(object, inputs), Mapping):
            raise BraidError(
                f"inputs by name are a mapping, got {type(inputs).__name__}",
                hint="run takes a sequence in the model's order",
            )
        tensors = any_tensor(inputs.values())
        results = self._run(self._bound((), inputs), None, tensors)
        return dict(zip((spec.name for spec in self.outputs), results, strict=True))

    def run_numbers(self, inputs: Sequence[Buffer]) -> list[Array]:
        """Run on arrays in the model's order, as callers from C do, and return arrays.

        Text is replaced by its numbers, and a mapping by a row of its values; see `boundary`.
        Raises as `run`.
        """
        return self._open().executor.run(list(inputs), None)

    def stream(
        self,
        requests: Requests,
        *,
        return_errors: bool = False,
        deadline: float | None = STREAM_DEADLINE,
        copy: bool = True,
    ) -> Stream:
        """Run the model for each of several requests: `for y in model.stream(xs)`.

        Devices of the model work side by side on consecutive requests, in threads of their own, and
        results come in the order of the requests. Each request is an array, a tuple of arrays in
        the model's order, or a mapping by name; a result is as that of a call. `async for` takes
        asynchronous requests too. A request that fails ends the stream with its error, or, with
        `return_errors`, has the error as its result. A launch that takes longer than `deadline`
        seconds (None: any time) ends the stream with an error. Without `copy`, inputs stay as they
        are until the request's result is there.

        Raises:
            BraidError: the model cannot run here, or there is no memory for a stream.

        """
        check_kinds(flags={"return_errors": return_errors, "copy": copy})
        check_deadline(deadline)
        if self._boundary:
            raise BraidError(
                "a stream takes and gives arrays of numbers, and the model has text or mappings",
                hint="call the model once for each request",
            )
        specs, drawn = self.inputs, self._drawn
        return Stream(
            self._open().executor.open_stream(deadline, return_errors),
            requests,
            lambda arguments, named: bind_inputs(specs, arguments, named, drawn=drawn),
            return_errors=return_errors,
            copy=copy,
        )

    def session(self, state: Mapping[str, str] | None = None, *, capacity: int = 0) -> StateSession:
        """Return a session that keeps the state of the model between calls.

        `state` has for each input of the state the output that is its next value; `*` stands for
        any text, the same in both: `model.session({"past.*": "present.*"})`. By default it is the
        state with which the model was compiled, which then grows in place: its memory first holds
        `capacity` elements along the growing dim, and is doubled whenever it is full. The session
        is called with the other inputs and returns the other outputs. It can be reset and forked.

        Raises:
            BraidError: a name matches nothing, an output cannot be the value of its input, nothing
                says what the state is, or the capacity is negative.

        """
        self._open()
        known = self.state
        if state is None and not known:
            raise BraidError(
                "nothing says what the state of the model is",
                hint="give it here or when compiling, such as "
                + option_text("state", {"past.*": "present.*"}),
            )
        is_number = isinstance(cast(object, capacity), Integral) and not isinstance(capacity, bool)
        if not is_number or not 0 <= capacity <= _MOST_CAPACITY:
            raise BraidError(
                f"capacity is {capacity!r:.100}, expected a number of elements from 0 to "
                f"{_MOST_CAPACITY:,}"
            )
        return StateSession(self, known if state is None else state, int(capacity))

    @property
    def state(self) -> Mapping[str, str]:
        """Return the output whose value each input of the state takes, by their names.

        It is the state with which the model was compiled, else empty.
        """
        return {} if self._manifest is None else {s.input: s.output for s in self._manifest.state}

    @property
    def size_checks(self) -> tuple[SizeCheckSpec, ...] | None:
        """Return what each call checks of the sizes of open dims; None of what is interpreted."""
        return None if self._manifest is None else self._manifest.size_checks

    @property
    def appended_state(self) -> Mapping[str, StateSpec]:
        """Return the states that code appends to in place, by the names of inputs.

        It is None if inputs are text or mappings, which each call converts to numbers.
        """
        executor = self._open().executor
        if self._boundary:
            return {}
        state = executor.state if isinstance(executor, NativeExecutor) else ()
        return {own.input: own for own in state if own.appended}

    def run_growing(self, inputs: Sequence[Buffer], outputs_for: OutputsFor) -> list[Array]:
        """Run on inputs as code has them, into the outputs that `outputs_for` returns for their
        shapes; of a state that is appended to, both may be the same memory. Raises as `run`.
        """
        executor = self._open().executor
        assert isinstance(executor, NativeExecutor), "only code appends in place"
        return executor.run_growing(inputs, outputs_for)

    def trim(self) -> None:
        """Give back the memory for intermediates that no call uses at the moment.

        A call at large sizes takes more than those at small sizes need, which keep it otherwise.
        """
        self._open().executor.trim()

    def profile(self) -> dict[str, ProfileEntry]:
        """Return how often each op ran and for how long, over all runs and streams so far.

        For a closed stream it has the requests that ended before. Empty unless the model was
        compiled with `profile=True`.
        """
        return self._open().executor.profile()

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return at which sizes of the open dims calls ran, and how often, the most frequent first.

        At most 256 different sizes are kept, the frequent ones (`SizeCount.error` bounds by how
        much a count may be too high). Runs of streams are not counted. Empty unless the model has
        open dims, and was compiled with `profile=True`.
        """
        return self._open().executor.profiled_sizes()

    def reset_profile(self) -> None:
        """Forget the runs so far, such as those that warm up."""
        self._open().executor.reset_profile()

    def traced(self, capacity: int = TRACED_EVENTS) -> AbstractContextManager[Trace]:
        """Return a context in which runs and streams that begin are recorded.

        `with model.traced() as trace:` has when each run, launch on a device and stage of a stream
        began and ended, and each kernel of a model compiled with `profile=True`; at most `capacity`
        events. `trace.write(path)` writes them for Perfetto and Chrome.

        Raises:
            BraidError: the model is interpreted, or there is no memory.

        """
        return self._open().executor.traced(capacity)

    def counted(self) -> AbstractContextManager[HardwareCounters]:
        """Return a context in which the hardware counts while kernels run.

        Of a model compiled with `profile=True`, after a run that warms up. Reading counters takes
        microseconds around each kernel, so that such runs are not for times.

        Raises:
            BraidError: the model is interpreted, or has no profile counters.

        """
        return self._open().executor.counted()

    @property
    def drawn(self) -> frozenset[str]:
        """Return the inputs that calls may leave out: random numbers are drawn by them."""
        return self._drawn

    @property
    def boundary(self) -> Boundary:
        """Return which inputs and outputs are text, mappings or random keys, by name."""
        return self._boundary

    @property
    def memory(self) -> tuple[MemoryReport, ...]:
        """Return what is in the arena, for every function; empty of what is interpreted."""
        return () if self._manifest is None else self._manifest.memory

    @property
    def kernels(self) -> RecordCount:
        """Return how many kernels are made by records of searches."""
        return NO_KERNELS if self._manifest is None else self._manifest.kernels

    @property
    def devices(self) -> dict[str, str]:
        """Return the devices other than the host on which functions are launched, and their
        plugins."""
        runs_on = () if self._manifest is None else self._manifest.runs_on
        return {own.name: own.plugin for own in runs_on}

    def launched_seconds(self) -> dict[str, float]:
        """Return how long launches took on each device, over all runs so far.

        By the device's own account: for a simulated device, the time that the chip would take.
        """
        return self._open().executor.launched_seconds()

    def device_seconds(self) -> dict[str, float]:
        """Return how long devices beside the host take of a run, as far as that is known.

        These are simulated times; ops in branches and loops count as often as they are expected to
        run.
        """
        return seconds_by_device(self._device_code)

    def device_frames(self) -> dict[str, float]:
        """Return how many inputs of a stream devices take per second at most, where it is known.

        Of several functions on a device, the slowest counts.
        """
        return inputs_per_second(self._device_code)

    def device_resources(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Return the resources of devices that functions take, and those that exist, where
        known."""
        return resources_by_device(self._device_code)

    @property
    def _device_code(self) -> Sequence[DeviceCodeSpec]:
        return () if self._manifest is None else self._manifest.devices

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one artifact file, which `braid.load` and the C runtime read.

        Raises:
            BraidError: the model is interpreted, there is no C compiler to link it, the artifact
                that it was loaded from is damaged, or the file cannot be written; what was at
                `path` then stays.

        """
        path = checked_path("Model.save", path, "a .braid file", "such as 'model.braid'")
        self.packaged().write(path)

    def save_c_library(self, path: str | os.PathLike[str]) -> None:
        """Write the model as a shared object (`.so`), and a header for C beside it (`.h`).

        The shared object holds the weights and braid's runtime, and needs nothing else of braid.

        Raises:
            BraidError: as `save`; the model was loaded from an artifact, or its weights take
                2 GiB or more.

        """
        path = checked_path("Model.save_c_library", path, "a .so file", "such as 'model.so'")
        package = self.packaged()
        if isinstance(package, KeptArtifact):
            package = package.package()
        if isinstance(package, Artifact):
            raise BraidError(
                "a model that was loaded from an artifact cannot become a C library",
                hint="use braid.compile on the model that it was compiled from",
            )
        package.link_c_library(path, package.manifest, package.objects, package.weights)

    def packaged(self) -> Package | Artifact | KeptArtifact:
        """Return what is saved. Raises BraidError where the model is interpreted."""
        package = self._open().package
        if package is None:
            raise BraidError(
                "an interpreted model has no code to save", hint="use braid.compile instead"
            )
        return package

    @property
    def threads(self) -> int:
        """Return how many threads a run takes, 0 for one on each CPU; it may be set at any time.

        Runs and streams that have begun are not changed. Setting it raises `BraidError` for an
        invalid number, or if the model does not run here.
        """
        return self._open().executor.threads

    @threads.setter
    def threads(self, threads: int) -> None:
        executor = self._open().executor
        check_threads(threads)
        executor.set_threads(int(threads))

    def close(self) -> None:
        """Give back code, weights and memory; what needs them afterwards is an error.

        Runs and streams that other threads have begun end as usual, and keep what they need until
        then. To close a model twice is no error.
        """
        self._state = None

    def __enter__(self) -> "Model":
        """Return the model itself, which is closed where the block ends."""
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def __copy__(self) -> "Model":
        """Return a model of the same code and weights, which is closed and counts on its own."""
        state = self._open()
        return Model(
            self.inputs,
            self.outputs,
            state.executor.copy(),
            self.arena_bytes,
            state.package,
            self._boundary,
        )

    def __deepcopy__(self, memo: object) -> "Model":
        """Return the model itself for `copy.copy`, since its code and weights never change."""
        return self.__copy__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Return what pickle writes: the bytes of the artifact, and how it runs here.

        Raises:
            BraidError: as `save`.

        """
        data = self.packaged().artifact_bytes()
        executor = self._open().executor
        content = PickleBuffer(data.data) if operator.index(protocol) >= 5 else data.tobytes()
        if isinstance(executor, ElsewhereExecutor):
            return _saved, (content, executor.reason, executor.hint)
        is_emulated = isinstance(executor, NativeExecutor) and executor.emulated
        return _loaded, (content, executor.threads, is_emulated)

    def _open(self) -> "_Open":
        """Return what the model runs with. Raises BraidError once it is closed."""
        if self._state is None:
            raise BraidError(
                "the model is closed",
                hint="compile it or load it again; of a model that is closed only inputs, outputs, "
                "memory, kernels and devices can be asked",
            )
        return self._state


class _Open(NamedTuple):
    """The executor and the package that a model holds until it is closed."""

    executor: Executor
    package: Package | Artifact | KeptArtifact | None


def _loaded(data: bytes, threads: int, emulate: bool) -> Model:
    """Return the model of a pickle, which runs here as where it was pickled. Raises as `load`."""
    artifact = artifact_of_bytes(data, _PICKLED)
    with emulating(emulate):
        return model_of(artifact, artifact, threads)


def _saved(data: bytes, reason: str, hint: str) -> Model:
    """Return the model of a pickle that did not run where it was pickled. Raises as
    `read_artifact`.
    """
    return saved_model(artifact_of_bytes(data, _PICKLED), reason, hint)


@checks_arguments("braid.load")
def load(path: str | os.PathLike[str], *, threads: int = 1, emulate: bool = False) -> Model:
    """Load an artifact; `threads` is the number of threads of each run, 0 for all.

    Kernels that were compiled to run side by side do so on no fewer threads than they need. With
    `emulate`, functions for devices that are missing run on the host.

    Manifest and code are checked for damage here, the weights before the first run. An artifact is
    native code, which runs with the rights of this process: load only what you trust.

    Raises:
        BraidError: the file is missing, damaged, of another format version, or needs CPU features,
        devices or libraries that this machine lacks.

    """
    check_threads(threads)
    check_kinds(flags={"emulate": emulate})
    path = checked_path("braid.load", path, "a .braid file", "braid.compile takes models")
    artifact = read_artifact(path)
    with emulating(emulate):
        return model_of(artifact, artifact, threads)


def model_of(artifact: Artifact, package: Artifact | KeptArtifact, threads: int) -> Model:
    """Return the model that runs an artifact on this many threads, and is saved as `package`.

    Raises:
        BraidError: as `load`.

    """
    manifest = artifact.manifest
    need_libraries(manifest.libraries, f"model '{manifest.model}' of '{artifact.path}'")
    if manifest.runs_on:
        register_plugins()
    native = NativeModel.from_artifact(artifact)
    executor = NativeExecutor(native, threads, manifest.inter_op_streams, manifest.state)
    inputs = in_model_order(native.inputs, manifest.state)
    outputs = in_model_order(native.outputs, manifest.state)
    return Model(inputs, outputs, executor, native.arena_bytes, package)


def saved_model(
    package: Package | Artifact | KeptArtifact,
    reason: str = "the model was compiled to be saved, not to run",
    hint: str = "compile it without load=False, or load what is saved",
) -> Model:
    """Return the model that is saved as `package`, and when it is called says `reason` and
    `hint`.
    """
    manifest = package.manifest
    executor = ElsewhereExecutor(reason, hint)
    inputs = in_model_order(manifest.inputs, manifest.state)
    outputs = in_model_order(manifest.outputs, manifest.state)
    return Model(inputs, outputs, executor, manifest.arena_bytes, package)
