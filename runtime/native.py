"""Compiled models in the native runtime: loading, contexts, running on numpy arrays.

A call into the runtime releases the GIL, as every ctypes call does, so that threads of Python run
models side by side: one `NativeModel`, one `NativeContext` each.
"""

import ctypes
import math
import os
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.artifact import Artifact
from braid.runtime.buffers import (
    apart_from,
    check_apart,
    check_count,
    check_input,
    check_kind,
    check_output,
    copied_into,
    empty_aligned,
    host_arrays,
)
from braid.runtime.descriptor_specs import dims_of, spec_of, with_value_sizes
from braid.runtime.device_arrays import Buffer, DeviceArray, address_of
from braid.runtime.device_plugins import EMULATED
from braid.runtime.device_ports import Users, check_place, ports_of
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.interruption import Interruption
from braid.runtime.manifest import DeviceSpec, TensorSpec
from braid.runtime.native_abi import CModel, CTensor, file_name, last_error, load_library
from braid.runtime.profile_entries import ProfileEntry, profile_entries
from braid.support.errors import BraidError
from braid.support.lockless import lockless_property
from braid.support.size_counts import MOST_SIZES, SizeCount


def _close_with(owner: object, close: Callable[[int], None], handle: int) -> None:
    """Close a handle when its owner goes, but not at exit.

    Then daemon threads may still run with it, and the system takes everything back.
    """
    weakref.finalize(owner, close, handle).atexit = False


def cpu_supports(feature: str) -> bool:
    """Return whether this CPU has the feature of that LLVM name; False for unknown names."""
    return load_library().braid_cpu_supports(feature.encode()) == 1


class _Expected(NamedTuple):
    """An input as a model takes it; open dims have the sizes of the run before, at first -1."""

    spec: TensorSpec
    users: Users
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class NativeModel:
    """A loaded model: immutable, and shared by any number of contexts in any threads."""

    def __init__(self, handle: int | None, *keep_alive: object) -> None:
        """Own a `braid_model_t *`, None after a failure; use the class methods instead.

        `keep_alive` are the objects whose memory the model reads.
        """
        if handle is None:
            error = last_error()
            is_damaged = " is damaged" in error.message
            raise last_error(hint="compile the model again") if is_damaged else error
        library = load_library()
        self.handle = handle
        self._keep_alive = keep_alive
        self.emulated = EMULATED.get()
        _close_with(self, library.braid_model_close, handle)
        self.descriptor: CModel = library.braid_model_describe(handle).contents
        self.dims = dims_of(self.descriptor)
        inputs = self._read_specs(self.descriptor.inputs, self.descriptor.input_count)
        self.inputs = with_value_sizes(inputs, self.descriptor, self.dims)
        self.value_inputs = tuple(i for i, spec in enumerate(self.inputs) if spec.values)
        self.outputs = self._read_specs(self.descriptor.outputs, self.descriptor.output_count)
        self.ports = ports_of(self.descriptor)
        self.arena_bytes = self.descriptor.arena_bytes
        devices = (self.descriptor.devices[i] for i in range(self.descriptor.device_count))
        self.runs_on = tuple(DeviceSpec(d.name.decode(), d.plugin.decode()) for d in devices)
        self.counter_names = tuple(
            self.descriptor.counter_names[i].decode() for i in range(self.descriptor.counter_count)
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "NativeModel":
        """Open an artifact file.

        Raises:
            BraidError: the file is missing, damaged, of another version, or needs CPU features that
            this machine lacks.

        """
        return cls(load_library().braid_model_open(file_name(path)))

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> "NativeModel":
        """Load an open artifact, and compare its manifest with its code.

        Raises:
            BraidError: header or code are damaged, manifest and code contradict each other, or
                the code needs CPU features that are missing here.

        """
        data = artifact.data
        name = os.fsencode(artifact.path)
        model = cls(
            load_library().braid_model_from_artifact(data.ctypes.data, data.size, name), data
        )
        model._check_manifest(artifact)
        return model

    @classmethod
    def from_memory(cls, code: bytes, weights: NDArray[np.uint8] | None = None) -> "NativeModel":
        """Load an ELF shared object that exports `braid_model`.

        `weights` are the bytes that the code reads, aligned to 64 bytes.
        """
        handle = load_library().braid_model_from_memory(code, len(code), *_place(weights))
        return cls(handle, weights)

    @classmethod
    def from_descriptor(
        cls, address: int, weights: NDArray[np.uint8] | None = None, *keep_alive: object
    ) -> "NativeModel":
        """Wrap the `braid_model_v2` at `address` in this process, as a JIT has placed it.

        `keep_alive` are the objects that own the code; see `from_memory` for `weights`.
        """
        handle = load_library().braid_model_from_descriptor(address, *_place(weights))
        return cls(handle, weights, *keep_alive)

    @property
    def decides_sizes(self) -> bool:
        """Return whether data decide the shapes of outputs, which are known after a run alone."""
        return self.descriptor.phases is not None

    @lockless_property
    def shapes_results(self) -> bool:
        """Return whether the shapes of the outputs follow from those of inputs, before a run."""
        return self.descriptor.variant_count > 0 or self.descriptor.open is not None

    @lockless_property
    def expected_inputs(self) -> "tuple[_Expected, ...]":
        """Return what each input must be; raises BraidError where an element type is not known."""
        pairs = zip(self.inputs, self.ports.inputs, strict=True)
        return tuple(_Expected(s, p, s.shape, numpy_dtype(s.dtype)) for s, p in pairs)

    @lockless_property
    def fixed_shapes(self) -> tuple[tuple[int, ...], ...] | None:
        """Return the shapes of the outputs if no dim of inputs and outputs is open."""
        specs = (*self.inputs, *self.outputs)
        if self.shapes_results or self.decides_sizes or any(-1 in spec.shape for spec in specs):
            return None
        return tuple(spec.shape for spec in self.outputs)

    @lockless_property
    def output_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """Element types of the outputs as numpy's; raises BraidError where one is not known."""
        return tuple(numpy_dtype(spec.dtype) for spec in self.outputs)

    def _check_manifest(self, artifact: Artifact) -> None:
        manifest, described = artifact.manifest, self.descriptor
        features = (described.features[i].decode() for i in range(described.feature_count))
        texts = tuple(map(len, manifest.output_shapes))
        ranks = tuple(len(spec.shape) for spec in self.outputs) if texts else ()
        for what, said, actual in (
            ("inputs", manifest.inputs, self.inputs),
            ("outputs", manifest.outputs, self.outputs),
            ("dims", manifest.dims, self.dims),
            ("arena_bytes", manifest.arena_bytes, self.arena_bytes),
            ("expanded_bytes", manifest.expanded_bytes, described.expanded_bytes),
            ("cpu_features", manifest.cpu_features, tuple(features)),
            ("runs_on", manifest.runs_on, self.runs_on),
            ("phases", manifest.phases > 0, self.decides_sizes),
            ("ranks in output_shapes", texts, ranks),
        ):
            if said != actual:
                raise BraidError(
                    f"'{artifact.path}' contradicts itself: its manifest says {what} = {said}, its "
                    f"code {actual}",
                    hint="compile the model again",
                )

    def _read_specs(self, tensors: Sequence[CTensor], count: int) -> tuple[TensorSpec, ...]:
        return tuple(spec_of(tensors[i], self.dims) for i in range(count))

    def context(self, threads: int = 1) -> "NativeContext":
        """Create a context that runs on `threads` threads; 0 means one for each CPU."""
        return NativeContext(self, threads)


class NativeContext:
    """An arena and a profile for the runs of one thread at a time."""

    def __init__(self, model: NativeModel, threads: int) -> None:
        """Create the context; raises `BraidError` when there is no memory for the arena."""
        library = load_library()
        handle: int | None = library.braid_context_create(model.handle, threads)
        if handle is None:
            raise last_error(hint="a context needs the model's arena; use fewer contexts")
        self.model = model
        self.threads = threads
        self.handle = handle
        self.observed: object = None
        """The observer of its runs, kept alive while they may call it."""
        self._interruption = Interruption()
        self._expected = model.expected_inputs
        self._shaped: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] | None = None
        library.braid_context_set_poll(handle, self._interruption.poll)
        _close_with(self, library.braid_context_close, handle)

    def run(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None = None
    ) -> list[NDArray[Any]]:
        """Run the model on inputs in the model's order; return its outputs.

        Inputs are made contiguous where they are not. `outputs`, if given, are contiguous buffers
        that the results are written to: of the outputs' shapes where these are known before the
        run, else of their upper bounds. They must not share memory; an input that shares memory
        with one of them is copied first. The result is the part of a buffer that the run filled.
        Buffers may be in the memory of a GPU that alone uses them; for such an output, the caller's
        object is returned.

        Raises:
            BraidError: a wrong number of arrays, a wrong dtype or shape, outputs that share
                memory, a buffer in the wrong memory, a failure in the run, or one that takes longer
                than `limited_runs` says. An exception of a signal handler, such as
                KeyboardInterrupt, ends loops of the model, too.

        """
        model = self.model
        check_count("input", len(inputs), len(model.inputs))
        arrays = list(map(self._checked_input, self._expected, inputs))
        if model.decides_sizes:
            return self._run_phases(arrays, outputs)
        shapes = model.fixed_shapes or self.shapes_for(arrays)
        if outputs is None:
            buffers = _empty_outputs(model, shapes)
        else:
            check_count("output", len(outputs), len(model.outputs))
            buffers = list(outputs)
            for i, (buffer, shape) in enumerate(zip(buffers, shapes, strict=True)):
                check_output(model.outputs[i], buffer, shape)
                if isinstance(buffer, DeviceArray):
                    check_place("output", model.outputs[i], model.ports.outputs[i], buffer)
            check_apart(model.outputs, buffers)
            pairs = zip(model.inputs, arrays, strict=True)
            arrays = [apart_from(buffers, spec, array) for spec, array in pairs]
        self._run(arrays, addresses(buffers))
        if outputs is None and (model.shapes_results or model.fixed_shapes is not None):
            return cast("list[NDArray[Any]]", buffers)
        return [self._filled(i, buffer) for i, buffer in enumerate(buffers)]

    def run_into(
        self,
        inputs: Sequence[Buffer],
        outputs_for: Callable[[Sequence[tuple[int, ...]]], Sequence[NDArray[Any]]],
    ) -> list[NDArray[Any]]:
        """Run the model into the outputs that `outputs_for` returns for their shapes.

        Outputs are contiguous arrays of these shapes. They may share memory with inputs where the
        model's code allows that. Raises as `run`.
        """
        model = self.model
        check_count("input", len(inputs), len(model.inputs))
        arrays = list(map(self._checked_input, self._expected, inputs))
        outputs = list(outputs_for(model.fixed_shapes or self.shapes_for(arrays)))
        self._run(arrays, addresses(outputs))
        return outputs

    def _run(
        self, inputs: Sequence[Buffer], outputs: "ctypes.Array[ctypes.c_void_p] | None"
    ) -> None:
        self._interruption.begin()
        if load_library().braid_context_run(self.handle, addresses(inputs), outputs) != 0:
            self._interruption.check()
            raise last_error()

    def _run_phases(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer] | None
    ) -> list[NDArray[Any]]:
        """Run a model whose data decide the shapes of its outputs: these are copied at the end."""
        for i, (spec, array) in enumerate(zip(self.model.inputs, inputs, strict=True)):
            if -1 in spec.shape:
                self._set_input_shape(i, array.shape)
        if outputs is not None:
            check_count("output", len(outputs), len(self.model.outputs))
        self._run(inputs, None)
        results = [self._result(i) for i in range(len(self.model.outputs))]
        if outputs is None:
            return [result.copy() for result in results]
        return copied_into(host_arrays(outputs, _WHERE), self.model.outputs, results)

    def _result(self, index: int) -> NDArray[Any]:
        """Return a view of an output that the context holds until the next run."""
        shape, dtype = self._output_shape(index), self.model.output_dtypes[index]
        address: int | None = load_library().braid_context_output(self.handle, index)
        if address is None:
            raise last_error()
        count = math.prod(shape) * dtype.itemsize
        memory = (ctypes.c_uint8 * count).from_address(address)
        return np.ndarray(shape, dtype, cast(Any, memory))

    def _checked_input(self, expected: "_Expected", value: Buffer) -> Buffer:
        if isinstance(value, DeviceArray):
            check_kind(expected.spec, value)
            check_place("input", expected.spec, expected.users, value)
            return value
        # The valid case takes few steps, since calls of small models consist of these checks.
        if value.shape == expected.shape and value.dtype == expected.dtype and value.flags.carray:
            return value
        return check_input(expected.spec, value)

    def shapes_for(self, inputs: Sequence[Buffer]) -> list[tuple[int, ...]]:
        """Return the shapes of outputs' buffers for inputs of these shapes, and values of sizes.

        Raises:
            BraidError: the model does not run at them.

        """
        given = [array.shape for array in inputs]
        for i in self.model.value_inputs:
            given.append(self._set_input_values(i, inputs[i]))
        if self._shaped is not None and self._shaped[0] == given:
            return self._shaped[1]
        self._shaped = None
        for i, (spec, shape) in enumerate(zip(self.model.inputs, given, strict=False)):
            if -1 in spec.shape:
                self._set_input_shape(i, shape)
        shapes = [self._shape_before(i) for i in range(len(self.model.outputs))]
        pairs = zip(self.model.expected_inputs, given, strict=False)
        self._expected = tuple(own._replace(shape=shape) for own, shape in pairs)
        self._shaped = given, shapes
        return shapes

    def trim(self) -> None:
        """Give the memory for intermediates back; the next run takes what it needs."""
        load_library().braid_context_trim(self.handle)

    def profile(self) -> dict[str, ProfileEntry]:
        """Return the counters by name; empty when the model was compiled without profiling."""
        library = load_library()
        counts = library.braid_context_profile_counts(self.handle)
        times = library.braid_context_profile_times(self.handle)
        return profile_entries(self.model.counter_names, counts, times)

    def profiled_sizes(self) -> tuple[SizeCount, ...]:
        """Return how often runs had which sizes; empty without open dims, and without profiling."""
        dims = [dim.name for dim in self.model.dims]
        sizes = (ctypes.c_int64 * (MOST_SIZES * max(len(dims), 1)))()
        counts, errors = (ctypes.c_uint64 * MOST_SIZES)(), (ctypes.c_uint64 * MOST_SIZES)()
        found = load_library().braid_context_profile_sizes(
            self.handle, MOST_SIZES, sizes, counts, errors
        )
        return tuple(
            SizeCount(
                tuple(zip(dims, sizes[i * len(dims) : (i + 1) * len(dims)], strict=True)),
                counts[i],
                errors[i],
            )
            for i in range(found)
        )

    def device_seconds(self) -> dict[str, float]:
        """Return how long launches on each device took, by the device's own account."""
        library = load_library()
        return {
            device.name: library.braid_context_device_time(self.handle, i) * 1e-9
            for i, device in enumerate(self.model.runs_on)
        }

    def reset_profile(self) -> None:
        """Set all counters to zero."""
        load_library().braid_context_profile_reset(self.handle)

    def _set_input_shape(self, index: int, shape: tuple[int, ...]) -> None:
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        if load_library().braid_context_set_input_shape(self.handle, index, sizes) != 0:
            raise last_error()

    def _set_input_values(self, index: int, array: Buffer) -> tuple[int, ...]:
        """Read sizes that an input holds, and return them."""
        if load_library().braid_context_set_input_values(self.handle, index, address_of(array)):
            raise last_error()
        return tuple(map(int, np.asarray(array).reshape(-1)))

    def _shape_before(self, index: int) -> tuple[int, ...]:
        """Return the shape of an output's buffer before the run."""
        bound = self.model.outputs[index].bound
        return self._output_shape(index) if self.model.shapes_results else bound

    def _filled(self, index: int, buffer: Buffer) -> NDArray[Any]:
        if isinstance(buffer, DeviceArray):
            return cast(NDArray[Any], buffer.given)  # what the caller's package calls an array
        if -1 not in self.model.outputs[index].shape or self.model.shapes_results:
            return buffer
        shape = self._output_shape(index)
        return buffer.reshape(-1)[: math.prod(shape)].reshape(shape)

    def _output_shape(self, index: int) -> tuple[int, ...]:
        sizes = load_library().braid_context_output_shape(self.handle, index)
        if not sizes:
            raise last_error()
        return tuple(int(sizes[d]) for d in range(len(self.model.outputs[index].shape)))


_WHERE = "a model whose data decide sizes"


def _empty_outputs(model: NativeModel, shapes: Sequence[tuple[int, ...]]) -> list[Buffer]:
    """Return buffers for outputs of these shapes. Raises BraidError without memory for them."""
    try:
        return list(map(empty_aligned, shapes, model.output_dtypes))
    except MemoryError as error:
        largest = max(range(len(shapes)), key=lambda i: math.prod(shapes[i]))
        raise BraidError(
            f"out of memory: output '{model.outputs[largest].name}' would have shape "
            f"{shapes[largest]}",
            hint="give inputs of other sizes",
        ) from error


def _place(weights: NDArray[np.uint8] | None) -> tuple[int | None, int]:
    """Return the address and the size."""
    return (None, 0) if weights is None else (weights.ctypes.data, weights.nbytes)


def addresses(arrays: Sequence[Buffer]) -> "ctypes.Array[ctypes.c_void_p]":
    """Return the addresses of arrays, as C takes them."""
    return _pointers(len(arrays))(*map(address_of, arrays))


@cache
def _pointers(count: int) -> "type[ctypes.Array[ctypes.c_void_p]]":
    return ctypes.c_void_p * count
