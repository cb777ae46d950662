"""What programs ask of ONNX Runtime, or tell it, for the whole process."""

from braid.onnxruntime.errors import WrongTypeError, WrongUseError
from braid.support import logs

API_VERSION = "1.32.0"
"""The version of ONNX Runtime whose names and behaviour `braid.onnxruntime` has."""
_LEVELS = (logs.DEBUG, logs.INFO, logs.WARNING, logs.ERROR, 50)


def get_device() -> str:
    """Return `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of ONNX Runtime that this stands for."""
    return API_VERSION


def get_build_info() -> str:
    """Return what runs the sessions."""
    from braid import __version__

    return f"braid {__version__}, with the API of ONNX Runtime {API_VERSION}"


def set_default_logger_severity(severity: int) -> None:
    """Set the level of the logger `braid`: 0 for DEBUG to 4 for CRITICAL.

    Raises:
        RuntimeError: there is no such severity.

    """
    import logging

    if _whole("severity", severity) not in range(len(_LEVELS)):
        raise WrongUseError(
            f"Invalid logging severity {severity}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal"
        )
    logging.getLogger(logs.NAME).setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Do nothing: messages of one level are all as detailed."""
    _without_effect("set_default_logger_verbosity", verbosity)


def set_seed(seed: int) -> None:
    """Do nothing: no op of a compiled model draws random numbers."""
    _without_effect("set_seed", seed)


def enable_telemetry_events() -> None:
    """Do nothing: braid sends nothing to anybody."""


def disable_telemetry_events() -> None:
    """Do nothing: braid sends nothing to anybody."""


def _without_effect(function: str, value: object) -> None:
    logs.log(logs.DEBUG, "%s(%d) has no effect", function, _whole(function, value))


def _whole(what: str, value: object) -> int:
    if not isinstance(value, int):
        raise WrongTypeError(f"{what} is {value!r:.200}, expected a whole number")
    return value
