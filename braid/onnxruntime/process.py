"""The functions by which programs ask or tell ONNX Runtime things of the whole process."""

from collections.abc import Callable
from pathlib import Path

from braid.onnxruntime.checked_options import whole_number
from braid.onnxruntime.errors import WrongTypeError, WrongUseError
from braid.support import logs

API_VERSION = "1.32.0"
"""The version of ONNX Runtime whose names and behaviour `braid.onnxruntime` has."""
package_name = "onnxruntime"
"""The package whose API this is; `get_build_info` names the runtime of the sessions."""
version = API_VERSION
cuda_version = ""
"""Empty, as in ONNX Runtime's package for CPUs."""

Callback = Callable[[int, str, str, str, str], object]
_HANDLER = "braid.onnxruntime"
_LEVELS = (logs.DEBUG, logs.INFO, logs.WARNING, logs.ERROR, 50)


def get_device() -> str:
    """Return `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of ONNX Runtime that this stands for."""
    return API_VERSION


def get_build_info() -> str:
    """Return the name of the runtime of sessions."""
    from braid import __version__

    return f"braid {__version__}, with the API of ONNX Runtime {API_VERSION}"


def set_default_logger_severity(severity: int) -> None:
    """Set the level of the logger `braid`: 0 for DEBUG to 4 for CRITICAL.

    Raises:
        RuntimeError: there is no such severity.

    """
    import logging

    logging.getLogger(logs.NAME).setLevel(_level(severity))


def set_default_logger_callback(callback: Callback | None, severity: int = 2) -> None:
    """Pass log messages to a function, from a severity on, or to none with None.

    It is called with the severity, the category, the name of the logger, the place in the code, and
    the message.

    Raises:
        RuntimeError: it cannot be called, or there is no such severity.

    """
    import logging

    level = _level(severity)
    if callback is not None and not callable(callback):
        raise WrongUseError("callback must be a callable")
    logger = logging.getLogger(logs.NAME)
    for handler in [each for each in logger.handlers if each.name == _HANDLER]:
        logger.removeHandler(handler)
    if callback is None:
        return

    class Calling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            number = sum(record.levelno >= each for each in _LEVELS[1:])
            place = f"{record.filename}:{record.lineno} {record.funcName}"
            callback(number, record.name, record.name, place, record.getMessage())

    calling = Calling()
    calling.name = _HANDLER
    logger.addHandler(calling)
    logger.setLevel(level)


def _level(severity: int) -> int:
    if _whole("severity", severity) not in range(len(_LEVELS)):
        raise WrongUseError(
            f"Invalid logging severity {severity}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal"
        )
    return _LEVELS[severity]


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Do nothing: each session has threads of its own."""
    _without_effect("set_global_thread_pool_sizes", intra_op_num_threads)
    _without_effect("set_global_thread_pool_sizes", inter_op_num_threads)


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Do nothing: a compiled model finds the driver of a GPU by itself."""
    logs.log(logs.DEBUG, "preload_dlls has no effect")


def has_collective_ops() -> bool:
    """Return False: models run in one process."""
    return False


def print_debug_info() -> None:
    """Print the runtime of sessions, and where it is."""
    import platform

    import braid

    print(get_build_info())
    print(f"platform: {platform.platform()}, Python {platform.python_version()}")
    print(f"braid=={braid.__version__} at {Path(braid.__file__).parent}")


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
    number = whole_number(value)
    if number is None:
        raise WrongTypeError(f"{what} is {value!r:.200}, expected a whole number")
    return number
