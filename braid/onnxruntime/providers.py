"""The execution providers of ONNX Runtime; braid takes the place of the CPU's."""

import warnings
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import cast

from braid.onnxruntime.errors import WrongValueError
from braid.support import logs
from braid.support.errors import did_you_mean

_SUFFIX = "ExecutionProvider"
CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
_ALL = (
    *("TensorrtExecutionProvider", CUDA, "MIGraphXExecutionProvider", "OpenVINOExecutionProvider"),
    *("DnnlExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider"),
    *("NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider"),
    *("CoreMLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider"),
    *("WebNNExecutionProvider", "WebGpuExecutionProvider", "XnnpackExecutionProvider"),
    *("CANNExecutionProvider", "AzureExecutionProvider", CPU),
)
_KNOWN = {*_ALL, "ROCMExecutionProvider", "NvTensorRTRTXExecutionProvider", "ACLExecutionProvider"}

Providers = Sequence[str | tuple[str, dict[str, object]]]


def get_all_providers() -> list[str]:
    """Return the names of ONNX Runtime's execution providers."""
    return list(_ALL)


def get_available_providers() -> list[str]:
    """Return the provider that sessions have without further options: that of the CPU.

    Models run on other devices where the configuration `braid.target` says so.
    """
    return [CPU]


def check_providers(providers: object, provider_options: object) -> None:
    """Check the providers given to a session, and warn of those that do not exist.

    Raises:
        ValueError: ONNX Runtime would not accept it, or a name is unknown.

    """
    names: list[str] = []
    for each in _sequence("providers", providers):
        pair: tuple[object, ...] = (each, None)
        if isinstance(each, tuple):
            pair = cast("tuple[object, ...]", each)
        name, options = pair if len(pair) == 2 else (None, None)
        if not isinstance(name, str) or not isinstance(options, Mapping | NoneType):
            raise WrongValueError(
                "'providers' values must be either strings or (string, dict) tuples."
            )
        names.append(name)
        _say(name, cast("Mapping[object, object]", options or {}))
    options_of_each = _sequence("provider_options", provider_options)
    if provider_options is not None and len(options_of_each) != len(names):
        raise WrongValueError(
            "'providers' and 'provider_options' should be the same length if both are given."
        )
    for name, options in zip(names, options_of_each, strict=False):
        if not isinstance(options, Mapping):
            raise WrongValueError("'provider_options' values must be dicts.")
        _say(name, cast("Mapping[object, object]", options))
    for name in names:
        if name not in _KNOWN:
            raise WrongValueError(
                f"there is no execution provider '{name}'",
                hint=_like(name) or f"sessions of braid have '{CPU}'",
            )
        if name != CPU:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names. "
                f"Available providers: '{CPU}'",
                stacklevel=4,
            )


def _like(name: str) -> str | None:
    """Return a hint with the intended provider: all names end alike, so the ends are ignored."""
    known = {each.removesuffix(_SUFFIX): each for each in _KNOWN}
    similar = did_you_mean(name.removesuffix(_SUFFIX), known)
    return similar.replace("'?", f"{_SUFFIX}'?") if similar else did_you_mean(name, _KNOWN, 0.9)


def _sequence(what: str, values: object) -> Sequence[object]:
    if values is None:
        return ()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise WrongValueError(
            f"'{what}' should be a sequence.", hint=f"{what} is {values!r:.80}, expected a list"
        )
    return cast(Sequence[object], values)


def _say(name: str, options: Mapping[object, object]) -> None:
    for option in options:
        logs.log(logs.DEBUG, "option '%s' of provider '%s' has no effect", option, name)
