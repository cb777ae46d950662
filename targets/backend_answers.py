"""Check the answers of backends of other packages; see `checked_calls.py`."""

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import FuncOp

from braid.support.checked_calls import (
    Check,
    Checked,
    FormerNames,
    Maker,
    all_of,
    class_of,
    is_own,
    missing_parts,
    one_of,
    require_parts,
)
from braid.support.errors import BraidError
from braid.targets.backend import (
    Backend,
    BackendGroup,
    Code,
    EmittedKernels,
    KernelMeter,
    KernelNeeds,
    Preparation,
)

NONE = type(None)

FORMER_NAMES: FormerNames = {
    "analytic_scheduling": "schedules_by",
    "compiled": "made",
    "local_machine": "machine_here",
    "quantity": "what",
    "schedule_pass": "selecting",
    "supports_dynamic_shapes": "takes_open_sizes",
    "unsupported_reason": "refusal",
}
"""The former names of parts of `Backend` and of `KernelMeter`, which backends of other packages may
still use."""


def checked_backend(name: str, found: object) -> Backend:
    """Return the backend of this name, whose answers are checked unless it is braid's.

    Raises BraidError where it lacks a part.
    """
    if missing := missing_parts(found, Backend):
        raise BraidError(
            f"backend '{name}' has no {missing}",
            hint=f"fix {class_of(found)}: a backend has the parts of 'Backend' without defaults",
        )
    if is_own(found):
        return cast(Backend, found)
    maker = Maker(f"backend '{name}'", found)
    checks = {
        **_BACKEND,
        "emit": partial(_emitted, maker),
        "meter": partial(_meter, maker),
    }
    return cast(Backend, Checked(found, Backend, checks, maker, FORMER_NAMES))


def _prepared(answer: Any, *_: Any) -> Preparation:
    found: Preparation = one_of(Preparation)(answer)
    all_of(str)((*found.before_folding, *found.before_fusion, *found.before_kernels))
    return found


def _emitted(maker: Maker, answer: Any, kernels: Sequence[FuncOp], *_: Any) -> Checked:
    require_parts(answer, EmittedKernels)
    checks: Mapping[str, Check] = {
        "needs": partial(_all_needs, len(kernels)),
        "link": all_of(Code),
        "at": all_of(str, bytes),
    }
    return Checked(answer, EmittedKernels, checks, maker)


def _all_needs(kernels: int, answer: Any) -> Sequence[KernelNeeds]:
    needs = all_of(KernelNeeds)(answer)
    if len(needs) != kernels:
        raise ValueError(f"there are {len(needs)}, for {kernels} kernels")
    return needs


def _meter(maker: Maker, answer: Any, *_: Any) -> AbstractContextManager[KernelMeter] | None:
    return None if answer is None else _opened(maker, answer)


@contextmanager
def _opened(maker: Maker, opened: AbstractContextManager[KernelMeter]) -> Generator[KernelMeter]:
    with maker.named("meter"):
        meter = opened.__enter__()
        require_parts(meter, KernelMeter, FORMER_NAMES)
    try:
        yield cast(KernelMeter, Checked(meter, KernelMeter, _METER, maker, FORMER_NAMES))
    finally:
        with maker.named("meter"):
            opened.__exit__(None, None, None)


def _made(answer: Any, kernels: Sequence[object], *_: Any) -> Sequence[Any | None]:
    made = tuple(answer)
    if len(made) != len(kernels):
        raise ValueError(f"there are {len(made)}, for {len(kernels)} kernels")
    return made


def _seconds(answer: Any, *_: Any) -> float | None:
    seconds = None if answer is None else float(answer)
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"it is {seconds}, expected a positive number or None")
    return seconds


def _results(answer: Any, *_: Any) -> Sequence[Any] | None:
    return None if answer is None else all_of(np.ndarray)(answer)


_BACKEND: Mapping[str, Check] = {
    "stages": all_of(str),
    "schedule_pass": one_of(str),
    "families": all_of(object),
    "prepare": _prepared,
    "unsupported_reason": one_of(str, NONE),
    "groups": all_of(BackendGroup),
    "analytic_scheduling": one_of(str, NONE),
    "local_machine": one_of(str, NONE),
}
_METER: Mapping[str, Check] = {
    "quantity": one_of(str),
    "is_exact": one_of(bool),
    "compiled": _made,
    "seconds": _seconds,
    "results": _results,
}
