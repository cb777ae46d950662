"""Asking kernel families of other packages, whose mistakes are named as theirs.

Braid's own families are believed: what they raise is a bug of braid.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import TensorType

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import Kernel, KernelFamily, KernelRequest, Schedule

_PARTS = tuple(name for name in vars(KernelFamily) if not name.startswith("_"))
"""What the protocol asks of a family."""


def check_families(families: Iterable[KernelFamily]) -> None:
    """Raises BraidError for a family that lacks a part of the protocol."""
    for family in families:
        missing = [name for name in _PARTS if not hasattr(family, name)]
        if missing:
            raise BraidError(
                f"kernel family {_class_of(family)} has no {_listed(missing)}",
                hint="a family has all methods of the protocol KernelFamily, and a name",
            )


def accepts(family: KernelFamily, group: FusedOp) -> bool:
    """`family.accepts(group)`."""
    with _named(family, "accepts", group):
        return family.accepts(group)


def layouts(family: KernelFamily, group: FusedOp) -> Sequence[LayoutChoice]:
    """`family.layouts(group)`. Raises BraidError for a choice that is none for `group`."""
    with _named(family, "layouts", group):
        choices = family.layouts(group)
        if not _is_own(family):
            for choice in choices:
                _check_choice(choice, group)
    return choices


def seconds(family: KernelFamily, group: FusedOp, choice: LayoutChoice) -> float:
    """`family.seconds(group, choice)`."""
    with _named(family, "seconds", group):
        return family.seconds(group, choice)


def default_schedule(family: KernelFamily, group: FusedOp) -> Schedule:
    """`family.default_schedule(group)`."""
    with _named(family, "default_schedule", group):
        return family.default_schedule(group)


def emit(family: KernelFamily, request: KernelRequest) -> Kernel:
    """`family.emit(request)`."""
    with _named(family, "emit", request.group):
        kernel = family.emit(request)
        if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"it is {kernel!r}, expected a Kernel")
    return kernel


@contextmanager
def _named(family: KernelFamily, method: str, group: FusedOp) -> Generator[None]:
    """Turns whatever the method of another package's family raises into a BraidError."""
    try:
        yield
    except BraidError:
        raise
    except Exception as error:
        if _is_own(family):
            raise
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        ops = ", ".join(op.name for op in group.body.block.ops if op is not group.terminator)
        raise BraidError(
            f"kernel family '{family.name}' fails in '{method}' of a group of {ops}: {detail}",
            location=source_location(group),
            hint=f"mend {_class_of(family)}; braid --debug … shows where",
        ) from error


def _check_choice(choice: object, group: FusedOp) -> None:
    if not isinstance(choice, LayoutChoice):
        raise TypeError(f"{choice!r} is no LayoutChoice")
    for what, chosen, values in (
        ("operands", choice.operands, group.operands),
        ("results", choice.results, group.results),
    ):
        if len(chosen) != len(values):
            raise ValueError(f"a choice has {len(chosen)} {what}, the group has {len(values)}")
        for index, (layout, value) in enumerate(zip(chosen, values, strict=True)):
            rank = len(shape_of(value)) if isinstance(value.type, TensorType) else 0
            if layout.rank != rank:
                raise ValueError(
                    f"'{layout}' for number {index} of the {what} has rank {layout.rank}, "
                    f"expected {rank}"
                )


def _is_own(family: object) -> bool:
    return type(family).__module__.startswith("braid.")


def _class_of(family: object) -> str:
    return f"'{type(family).__module__}:{type(family).__qualname__}'"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
