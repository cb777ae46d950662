"""`RunOptions`: how a run goes, and ends."""

from contextlib import AbstractContextManager

from braid.onnxruntime.checked_options import CheckedOptions, check_entry
from braid.onnxruntime.config_keys import RUN_KEYS, SHRINK
from braid.onnxruntime.errors import Fail, NotImplementedStatus, WrongTypeError
from braid.runtime.interruption import ended_runs
from braid.support import logs


class RunOptions(CheckedOptions):
    """The options of a run. `terminate` may be set by another thread, and ends the model's loops.

    All other attributes are without effect.
    """

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Take a key of ONNX Runtime; one of them lets the run give memory back.

        Raises:
            NotImplemented: there is no such key.

        """
        check_entry(key, value, RUN_KEYS, "a run")
        if key != SHRINK:
            logs.log(logs.DEBUG, "configuration '%s' of a run has no effect", key)
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return the value of an entry. Raises `RuntimeError` where it was not added."""
        return self.entry(key)

    def add_active_adapter(self, adapter: object) -> None:
        """Raise NotImplemented: weights are compiled with the model."""
        raise NotImplementedStatus(
            "RunOptions.add_active_adapter: braid has no adapters of weights"
        )

    def ending(self) -> AbstractContextManager[None]:
        """Return a block whose runs end once `terminate` is set. Raises Fail where it is."""
        if self.terminate:
            raise Fail("Exiting due to terminate flag being set to true.")
        return ended_runs(lambda: self.terminate)

    @property
    def shrinks_memory(self) -> bool:
        """True if memory is given back after the run."""
        return bool(self.entries.get(SHRINK))


def check_run_options(options: object) -> None:
    """Raise TypeError unless these are the options of a run, or None."""
    if not isinstance(options, RunOptions | None):
        raise WrongTypeError(
            f"run_options is a {type(options).__name__}, expected a RunOptions of braid or None",
            hint="options = RunOptions() has attributes such as options.terminate",
        )
