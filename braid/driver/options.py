"""What `braid.compile` was told, as one value."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from braid.support.errors import BraidError, check_kinds, check_threads

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from braid.driver.sources.source_model import Parameters
    from braid.passes.partition.assign_devices import Strategy

ON_MISS_SECONDS = 600.0
"""How long kernels are searched where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The keywords of `braid.compile`, which says what each means."""

    target: str | os.PathLike[str] | None = None
    cpu: str | None = None
    gpu_arch: str | None = None
    threads: int = 1
    shapes: Mapping[str, Sequence[int]] | None = None
    shape_buckets: Mapping[str, Sequence[int]] | None = None
    shape_bounds: Mapping[str, int] | None = None
    parameters: "Parameters | str | os.PathLike[str] | None" = None
    jobs: int | None = None
    profile: bool = False
    use_profile: str | os.PathLike[str] | None = None
    unseen: float | None = None
    memory_budget: int | str | None = None
    recompute: str | None = None
    measure_orders: float | None = None
    inter_op_threads: int = 1
    order_seconds: float | None = None
    partition: "Strategy | None" = None
    pin: Sequence[str] = ()
    integers: bool = True
    emulate: bool = False
    load: bool = True
    kernels: str | None = None
    numerics: str | None = None
    precision: str | None = None
    on_miss: str = "default"
    on_miss_seconds: float = ON_MISS_SECONDS
    passes: "str | Sequence[ModulePass] | None" = None

    def check(self) -> None:
        """Raises BraidError for numbers and times that there cannot be, and for other types."""
        check_threads(self.threads)
        check_threads(self.inter_op_threads, "inter_op_threads", least=1)
        if self.jobs is not None:
            check_threads(self.jobs, "jobs", least=1)
        for name in ("measure_orders", "order_seconds", "on_miss_seconds"):
            _check_seconds(name, getattr(self, name))
        check_kinds(
            texts={name: getattr(self, name) for name in ("cpu", "gpu_arch", "recompute")},
            paths={name: getattr(self, name) for name in ("target", "use_profile")},
            flags={
                name: getattr(self, name) for name in ("profile", "integers", "emulate", "load")
            },
        )


def _check_seconds(name: str, value: object) -> None:
    """Raises BraidError unless `value` is a time that is not negative, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= cast(float, value) < math.inf:
        raise BraidError(f"{name} is {value!r}, expected a number of seconds")
