"""`InferenceSession`: a compiled model behind the class that programs for ONNX Runtime use."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, cast

from numpy.typing import NDArray

from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.devices import OrtDevice
from braid.onnxruntime.errors import (
    InvalidArgument,
    NotImplementedStatus,
    WrongTypeError,
    WrongUseError,
    WrongValueError,
)
from braid.onnxruntime.loading import open_model
from braid.onnxruntime.profile_file import write_profile
from braid.onnxruntime.providers import Providers, check_providers
from braid.onnxruntime.refusals import refused_name, refused_run
from braid.onnxruntime.run_options import RunOptions, check_run_options
from braid.onnxruntime.runs import run_on, without_dims
from braid.onnxruntime.session_facts import Session
from braid.onnxruntime.session_options import SessionOptions
from braid.onnxruntime.value_vectors import OrtValueVector
from braid.onnxruntime.values import OrtValue
from braid.support import logs
from braid.support.errors import BraidError, did_you_mean

Array = NDArray[Any]
Feed = Mapping[str, Any]
_IGNORED = ("enable_fallback", "read_config_from_model", "disabled_optimizers")
"""Arguments of ONNX Runtime's sessions that have no effect here."""


_ARGUMENTS = ("path_or_bytes", "sess_options", "providers", "provider_options", *_IGNORED)


class InferenceSession(Session):
    """A model that is compiled when the session is made, unless it was before.

    The whole model is compiled, for the CPU unless the options say otherwise, with open dims for
    all sizes; no other runtime runs any part of it. Sessions can be pickled and copied, and closed
    (`with`), as models can. `model` is the compiled one.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, object]] | None = None,
        **kwargs: object,
    ) -> None:
        """Compile an ONNX model, or load a `.braid` file, for this process.

        Raises:
            NoSuchFile: there is no file at the path.
            InvalidProtobuf: the file is no ONNX model.
            InvalidGraph: the model is not valid.
            NotImplemented: the model has an op, or the options a value, that braid has not.
            TypeError: an argument is of the wrong kind, or unknown.
            ValueError: a provider is unknown.

        """
        for name in kwargs:
            if name not in _IGNORED:
                raise WrongTypeError(
                    f"InferenceSession has no argument '{name}'",
                    hint=did_you_mean(name, _ARGUMENTS) or f"it has {', '.join(_ARGUMENTS)}",
                )
            logs.log(logs.DEBUG, "argument '%s' of a session has no effect", name)
        options = SessionOptions() if sess_options is None else sess_options
        if not isinstance(cast(object, options), SessionOptions):
            raise WrongTypeError(
                f"sess_options is a {type(options).__name__}, expected a SessionOptions of braid"
            )
        check_providers(providers, provider_options)
        self._options = options
        self._profile_start = time.time_ns() if options.enable_profiling else 0
        self._is_profiling = options.enable_profiling
        self._opened = open_model(path_or_bytes, options)
        self._model = self._opened.model
        self._names = [argument.name for argument in self._opened.inputs]
        self._numbers = {spec.name: i for i, spec in enumerate(self._model.outputs)}

    def set_providers(
        self,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """Check the providers as a new session does; the model stays where it is."""
        check_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Do nothing: there is no fallback."""

    def enable_fallback(self) -> None:
        """Do nothing: there is no fallback."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feed,
        run_options: RunOptions | None = None,
    ) -> list[Array]:
        """Run the model on inputs by name, and return the outputs of these names, or all.

        Inputs are those of `braid.Model`, or values.

        Raises:
            ValueError: an input is missing.
            InvalidArgument: a name is unknown, or an input has the wrong type, rank or size.
            Fail: the run failed, or was ended by `run_options.terminate`.

        """
        check_run_options(run_options)
        values, numbers = self._ordered(input_feed), self._chosen(output_names)
        results = self._run(values, run_options)
        return results if numbers is None else [results[number] for number in numbers]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model on values, and return values; raises as `run`."""
        return list(map(OrtValue, self.run(output_names, input_dict_ort_values, run_options)))

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """Run the model on values by name, and append the outputs, or write to values there are.

        Raises:
            InvalidArgument: the numbers of values and names differ, or a name is unknown.
            ValueError: an input is missing.
            Fail: the run failed, or was ended by `run_options.terminate`.

        """
        for vector in (feeds, fetches):
            if not isinstance(cast(object, vector), OrtValueVector):
                raise WrongTypeError(
                    f"a {type(vector).__name__} is given, expected an OrtValueVector"
                )
        for what, names, count in (
            ("feed", feed_names, len(feeds)),
            ("output", fetch_names, len(fetches) or len(fetch_names)),
        ):
            if len(names) != count:
                raise InvalidArgument(
                    f"{what} names has {len(names)} elements, but {what} has {count} elements."
                )
        feed = dict(zip(feed_names, feeds, strict=True))
        for name in feed_names:
            if name not in self._names:
                raise refused_name("input", name, self._names)
        results = self.run_with_ort_values(fetch_names, feed, run_options)
        for target, result in zip(list(fetches), results, strict=False):
            target.update_inplace(result)
        for result in () if len(fetches) else results:
            fetches.push_back(result)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feed,
        callback: Callable[[list[Array], Any, str], object],
        user_data: object = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run the model on a new thread, which calls `callback(results, user_data, error)`.

        `error` is empty text where the run did not fail. Raises as `run` for names and missing
        inputs.
        """
        check_run_options(run_options)
        if not callable(callback):
            raise WrongTypeError(f"callback is {callback!r:.200}, expected a function")
        values, numbers = self._ordered(input_feed), self._chosen(output_names)

        def run() -> None:
            try:
                results = self._run(values, run_options)
            except BraidError as error:
                callback([], user_data, str(error))
                return
            chosen = results if numbers is None else [results[number] for number in numbers]
            callback(chosen, user_data, "")

        threading.Thread(target=run, name="braid-run-async").start()

    def io_binding(self) -> IOBinding:
        """Return a binding with nothing bound yet."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run the model on the bound inputs; outputs are written where they are bound.

        Raises:
            ValueError: the binding is another session's.
            RuntimeError: an input or all outputs are missing, or something bound does not fit.

        """
        if not isinstance(cast(object, iobinding), IOBinding):
            raise WrongTypeError(
                f"iobinding is a {type(iobinding).__name__}, expected an IOBinding",
                hint="session.io_binding() makes one",
            )
        check_run_options(run_options)
        if iobinding.session is not self:
            raise WrongValueError("IOBinding must be used with the session that created it.")
        try:
            missing = [name for name in self._names if name not in iobinding.bound_inputs]
            if missing:
                raise WrongUseError(f"inputs {', '.join(missing)} are not bound")
            values = [iobinding.bound_inputs[name].buffer for name in self._names]
            run = partial(self._run, values, run_options)
            iobinding.set_results(run_on(self._model.outputs, iobinding, run))
        except BraidError as error:
            raise WrongUseError(f"Error in execution: {error.message}", hint=error.hint) from error

    def end_profiling(self) -> str:
        """Write how long each op took, and return the name of the file.

        The name is empty where the session has no `enable_profiling`, or has written it before.
        """
        if not self._is_profiling:
            return ""
        self._is_profiling = False
        return write_profile(self._options.profile_file_prefix, self._model.profile())

    def close(self) -> None:
        """Give back code, weights and memory; runs are an error afterwards."""
        self._model.close()

    def __enter__(self) -> "InferenceSession":
        """Return the session itself, which is closed where the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _ordered(self, feed: Feed) -> list[object]:
        """Return inputs in the model's order. Raises as `run`."""
        if not isinstance(cast(object, feed), Mapping):
            raise WrongTypeError(
                f"input_feed is a {type(feed).__name__}, expected a mapping of names to arrays",
                hint=f"such as {{'{next(iter(self._names), 'x')}': x}}",
            )
        missing = [name for name in self._names if name not in feed]
        if missing:
            raise WrongValueError(
                f"Required inputs ({missing}) are missing from input feed ({list(feed)}).",
                hint=f"the inputs are {', '.join(self._names)}",
            )
        if len(feed) > len(self._names):
            unknown = next(name for name in feed if name not in self._names)
            if unknown in {arg.name for arg in self._opened.overridable}:
                raise NotImplementedStatus(
                    f"input '{unknown}' is a weight of the model, which a run cannot replace"
                )
            raise refused_name("input", unknown, self._names)
        values = (feed[name] for name in self._names)
        return [value.buffer if isinstance(value, OrtValue) else value for value in values]

    def _chosen(self, names: Sequence[str] | None) -> list[int] | None:
        """Return the numbers of outputs; None for all. Raises as `run`."""
        if not names:
            return None
        if isinstance(names, str):
            raise WrongTypeError(
                f"output_names is the text {names!r}, expected a list of names",
                hint=f"such as [{names!r}], or None for all",
            )
        for name in names:
            if name not in self._numbers:
                raise refused_name("output", name, self._numbers)
        return [self._numbers[name] for name in names]

    def _run(
        self, values: Sequence[object], run_options: RunOptions | None, out: object = None
    ) -> list[Array]:
        values = list(map(without_dims, self._model.inputs, values))
        try:
            if run_options is None:
                return self._model.run(values, out)
            with run_options.ending():
                results = self._model.run(values, out)
        except BraidError as error:
            raise refused_run(self._model.inputs, values, error) from error
        if run_options.shrinks_memory:
            self._model.trim()
        return results
