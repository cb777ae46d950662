"""The page of `braid diff`: two compilations side by side."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from braid.tools.comparison.compiled_difference import CompiledDifference
from braid.tools.comparison.decided_kernels import MEASURED, DecidedKernel
from braid.tools.comparison.moved import moved
from braid.tools.explain.document import page_data
from braid.tools.explain.kernel_rows import KernelRow, Measured


def with_times(
    rows: Sequence[KernelRow], kernels: Sequence[DecidedKernel]
) -> tuple[KernelRow, ...]:
    """Return the rows with the times that were measured of kernels of the same ops."""
    known = {kernel.name: kernel.seconds for kernel in kernels if kernel.source == MEASURED}

    def measured(row: KernelRow) -> Measured | None:
        seconds = known.get("+".join(row.ops))
        return None if seconds is None else Measured(seconds, None, None, None, row.runs)

    return tuple(replace(row, measured=measured(row)) for row in rows)


def difference_page(
    labels: tuple[str, str],
    rows: tuple[Sequence[KernelRow], Sequence[KernelRow]],
    found: CompiledDifference,
) -> dict[str, Any]:
    """Return the document of a page that shows two compilations, called `labels`."""
    changes = moved(*rows)
    seconds = found.seconds
    data = page_data(f"braid diff {labels[0]} – {labels[1]}")
    data["difference"] = {
        "labels": list(labels),
        "seconds": [seconds.a, seconds.b],
        "is_measured": found.is_measured,
        "summary": found.summary(),
        "kernels": [change.data() for change in changes],
        "settings": [asdict(change) for change in found.settings],
        "bytes": [asdict(change) for change in found.bytes],
    }
    return data
