"""`SessionOptions`: options with an effect, options that are accepted without one, and the rest.

Attributes, entries and methods that ONNX Runtime has are known. Options without effect here are
accepted, and logged at the level DEBUG of the logger `braid`. Options that would change results,
and unknown ones, are refused.
"""

from collections.abc import Sequence
from typing import Any, NoReturn, cast

from braid.driver.options import CompileOptions
from braid.onnxruntime.checked_options import (
    CheckedOptions,
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    check_entry,
    whole_number,
)
from braid.onnxruntime.config_keys import EXTERNAL_FOLDER, SESSION_KEYS
from braid.onnxruntime.entries import OWN_KEYS, read_entry
from braid.onnxruntime.errors import NotImplementedStatus, WrongAttributeError, WrongTypeError
from braid.onnxruntime.node_args import OpenDim
from braid.support import logs


class SessionOptions(CheckedOptions):
    """The options by which a model is compiled for a session.

    `intra_op_num_threads` is on how many threads a run is, 0 for all CPUs; with `execution_mode`
    parallel, `inter_op_num_threads` is how many kernels of a model of fixed sizes run side by side.
    `enable_profiling` lets `end_profiling` write how long each op took, into a file whose name
    begins with `profile_file_prefix`. All other attributes are without effect.
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True

    def __init__(self) -> None:
        """Begin with the defaults."""
        super().__init__()
        vars(self)["_sizes"], vars(self)["_denoted"] = {}, {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Take a key of ONNX Runtime without effect, or `braid.` and an option of `braid.compile`.

        Such as `braid.numerics`, `strict`.

        Raises:
            NotImplemented: the key is neither.

        """
        check_entry(key, value, SESSION_KEYS | OWN_KEYS.keys(), "a session")
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return the value of an entry. Raises `RuntimeError` where it was not added."""
        return self.entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix an open dim, wherever its name stands. A model without such a dim does not change.

        Raises:
            TypeError: the name is no text, or the size no integer.

        """
        _give_size(vars(self)["_sizes"], name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the open dims that the model says to denote something, such as `DATA_BATCH`."""
        _give_size(vars(self)["_denoted"], denotation, size)

    def has_providers(self) -> bool:
        """Return False: providers are given to the session."""
        return False

    def __getattr__(self, name: str) -> Any:
        if name not in _REFUSED:
            raise WrongAttributeError(f"SessionOptions has no option '{name}'")

        def refuse(*arguments: object, **keywords: object) -> NoReturn:
            raise NotImplementedStatus(f"SessionOptions.{name}: {_REFUSED[name]}")

        return refuse

    def fixed_dims(self, dims: Sequence[OpenDim]) -> dict[str, int]:
        """Return the sizes that are given to the open dims of a model, by braid's names."""
        named: dict[str, int] = vars(self)["_sizes"]
        denoted: dict[str, int] = vars(self)["_denoted"]
        for given, known in (
            (named, {dim.name for dim in dims}),
            (denoted, {dim.denotation for dim in dims}),
        ):
            for name in given.keys() - known:
                logs.log(logs.DEBUG, "the model has no open dim '%s' to override", name)
            for name in (name for name, size in given.items() if size < 0):
                logs.log(logs.DEBUG, "dim '%s' stays open: its size is negative", name)
        sizes = [(d.key, named.get(d.name, denoted.get(d.denotation, -1))) for d in dims]
        return {key: size for key, size in sizes if size >= 0}

    @property
    def external_folder(self) -> str:
        """The folder with the external data of the model, empty where none is given."""
        return self.entries.get(EXTERNAL_FOLDER, "")

    def compile_options(self, dims: Sequence[OpenDim] = ()) -> CompileOptions:
        """Return the arguments of `braid.compile` for a model that has these open dims.

        Raises:
            NotImplemented: an attribute is set whose effect braid does not support.
            InvalidArgument: an entry has a value of the wrong kind.

        """
        if self.optimized_model_filepath:
            raise NotImplementedStatus(
                "optimized_model_filepath: braid writes no ONNX models",
                hint="session.model.save(path) writes a .braid file, which a session opens too",
            )
        self._say_what_is_ignored()
        entries = self.entries.items()
        own = {OWN_KEYS[key]: read_entry(key, text) for key, text in entries if key in OWN_KEYS}
        sizes = self.fixed_dims(dims)
        given: dict[str, Any] = {
            "threads": max(0, self.intra_op_num_threads),
            "profile": self.enable_profiling,
            **own,
            "dims": {**sizes, **cast("dict[str, int | str]", own.get("dims", {}))} or None,
        }
        is_open = any(dim.key not in sizes for dim in dims)
        if self.execution_mode is ExecutionMode.ORT_PARALLEL and is_open:
            logs.log(logs.DEBUG, "kernels of open sizes do not run side by side")
        elif self.execution_mode is ExecutionMode.ORT_PARALLEL:
            given["inter_op_threads"] = max(1, self.inter_op_num_threads)
        return CompileOptions(**given)

    def _say_what_is_ignored(self) -> None:
        for name, value in self.changed():
            if name not in _WITH_EFFECT or (isinstance(value, int) and value < 0):
                logs.log(logs.DEBUG, "SessionOptions.%s = %s has no effect", name, value)
        for key in self.entries.keys() - OWN_KEYS.keys() - {EXTERNAL_FOLDER}:
            logs.log(logs.DEBUG, "configuration '%s' of a session has no effect", key)


def _give_size(sizes: dict[str, int], name: object, size: object) -> None:
    if not isinstance(name, str):
        raise WrongTypeError(f"the name of a dim is {name!r:.200}, expected text")
    number = whole_number(size)
    if number is None:
        raise WrongTypeError(f"dim '{name}' is {size!r:.200}, expected a size")
    sizes[name] = number


_WITH_EFFECT = frozenset(
    {
        *("enable_profiling", "execution_mode", "inter_op_num_threads", "intra_op_num_threads"),
        "profile_file_prefix",
    }
)
_REFUSED = {
    "register_custom_ops_library": "kernels of a library are native code for ONNX Runtime; braid's "
    "ops are added as the documentation says in 'Add an op'",
    "add_initializer": "weights are compiled with the model; put them into the model",
    "add_external_initializers": "weights are compiled with the model; put them into the model",
    "add_external_initializers_from_files_in_memory": "give the path of the model, and keep its "
    "files beside it",
    "add_provider": "give the session its providers",
    "add_provider_for_devices": "give the session its providers",
    "set_provider_selection_policy": "give the session its providers",
    "set_provider_selection_policy_delegate": "give the session its providers",
    "set_ep_context_data_read_func": "braid has no models with nodes of EPContext",
    "clear_ep_context_data_read_func": "braid has no models with nodes of EPContext",
    "set_load_cancellation_flag": "give braid.compile a progress function, which may end it",
}
"""Methods of ONNX Runtime's options that mean something else than braid does."""
