"""`SessionOptions`: what has an effect, what is taken without one, and the rest.

Attributes, entries and methods that ONNX Runtime has are known. Of these the ones without a meaning
here are taken, and said at the level DEBUG of the logger `braid`; what would change results, or is
not known, is refused.
"""

from typing import Any, NoReturn, cast

from braid.driver.options import CompileOptions, options_of
from braid.onnxruntime.checked_options import (
    CheckedOptions,
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    check_entry,
)
from braid.onnxruntime.config_keys import SESSION_KEYS
from braid.onnxruntime.errors import (
    NotImplementedStatus,
    WrongAttributeError,
    WrongTypeError,
    WrongValueError,
)
from braid.support import logs


class SessionOptions(CheckedOptions):
    """How a model is compiled for a session.

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
        vars(self)["_sizes"] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Take a key of ONNX Runtime without effect, or `braid.` and an option of `braid.compile`.

        Such as `braid.numerics`, `strict`.

        Raises:
            NotImplemented: the key is neither.

        """
        check_entry(key, value, SESSION_KEYS | _OWN_KEYS.keys(), "a session")
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return the value of an entry. Raises `RuntimeError` where it was not added."""
        return self.entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix an open dim, wherever its name stands."""
        if not isinstance(cast(object, size), int) or size < 0:
            raise WrongTypeError(f"dim '{name}' is {size!r:.200}, expected a size")
        self.fixed_dims[name] = size

    def has_providers(self) -> bool:
        """Return False: providers are given to the session."""
        return False

    def __getattr__(self, name: str) -> Any:
        if name not in _REFUSED:
            raise WrongAttributeError(f"SessionOptions has no option '{name}'")

        def refuse(*arguments: object, **keywords: object) -> NoReturn:
            raise NotImplementedStatus(f"SessionOptions.{name}: {_REFUSED[name]}")

        return refuse

    @property
    def fixed_dims(self) -> dict[str, int]:
        """The sizes of open dims by name."""
        return vars(self)["_sizes"]

    def compile_options(self, is_open: bool = False) -> CompileOptions:
        """Return what `braid.compile` is to do with a model that has open dims, or none.

        Raises:
            NotImplemented: an attribute is set that would have an effect which braid has not.
            ValueError: an entry has a value of the wrong kind.

        """
        entries = self.entries
        if self.optimized_model_filepath:
            raise NotImplementedStatus(
                "optimized_model_filepath: braid writes no ONNX models",
                hint="session.model.save(path) writes a .braid file, which a session opens too",
            )
        for name, value in self.changed():
            if name not in _WITH_EFFECT:
                logs.log(logs.DEBUG, "SessionOptions.%s = %s has no effect", name, value)
        own = {_OWN_KEYS[k]: _value(k, v) for k, v in entries.items() if k in _OWN_KEYS}
        for key in entries.keys() - _OWN_KEYS.keys():
            logs.log(logs.DEBUG, "configuration '%s' of a session has no effect", key)
        given: dict[str, Any] = {
            "threads": self.intra_op_num_threads,
            "dims": dict(self.fixed_dims) or None,
            "profile": self.enable_profiling,
            **own,
        }
        if self.execution_mode is ExecutionMode.ORT_PARALLEL and is_open:
            logs.log(logs.DEBUG, "kernels of open sizes do not run side by side")
        elif self.execution_mode is ExecutionMode.ORT_PARALLEL:
            given["inter_op_threads"] = max(1, self.inter_op_num_threads)
        return CompileOptions(**given)


_WITH_EFFECT = frozenset(
    {
        *("enable_profiling", "execution_mode", "inter_op_num_threads", "intra_op_num_threads"),
        "profile_file_prefix",
    }
)
_OWN_KEYS = {
    f"braid.{name}": name
    for name, option in options_of().items()
    if option.kind in (str, int, float, bool) and not option.repeats
}
"""Entries that are options of `braid.compile`, whose values have a text."""
_REFUSED = {
    "register_custom_ops_library": "kernels of a library are native code for ONNX Runtime; braid's "
    "ops are added as the documentation says in 'Add an op'",
    "add_initializer": "weights are compiled with the model; put them into the model",
    "add_external_initializers": "weights are compiled with the model; put them into the model",
    "add_external_initializers_from_files_in_memory": "give the path of the model, and keep its "
    "files beside it",
    "add_free_dimension_override_by_denotation": "name the dim, with "
    "add_free_dimension_override_by_name",
    "add_provider": "give the session its providers",
    "add_provider_for_devices": "give the session its providers",
    "set_provider_selection_policy": "give the session its providers",
    "set_load_cancellation_flag": "give braid.compile a progress function, which may end it",
}
"""Methods of ONNX Runtime's options that mean something else than braid does."""


def _value(key: str, text: str) -> object:
    kind = options_of()[_OWN_KEYS[key]].kind
    try:
        if kind is bool:
            return {"1": True, "true": True, "0": False, "false": False}[text.lower()]
        return text if kind is None else kind(text)
    except (ValueError, KeyError) as error:
        expected = "1 or 0" if kind is bool else "a number"
        raise WrongValueError(f"configuration '{key}' is {text!r:.200}, expected {expected}") from (
            error
        )
