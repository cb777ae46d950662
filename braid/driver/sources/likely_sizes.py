"""Sizes of open dims that a model is likely to be used at, and at which it is valid."""

import time
from collections.abc import Iterator

from braid.driver.sources.open_model import OpenModel, Sizes
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError

_BATCH, _SEQUENCE, _SIDE = 1, 128, 224
_OTHERS = (32, 16, 64, 256, 8, 512, 1)
"""The sizes that dims other than the batch are tried with where the likely ones are not valid."""
_SECONDS = 2.0
"""After which no further sizes are tried."""


def valid_sizes(model: OpenModel) -> Sizes | None:
    """Return sizes of the open dims at which the model can be imported, None if none is found.

    What is said of sizes that are tried is not said of the model.
    """
    end = time.monotonic() + _SECONDS
    for sizes in _candidates(model):
        try:
            with handle_diagnostics(lambda _: None):
                model.at(sizes, keep_open=True)
            return sizes
        except BraidError:
            if time.monotonic() > end:
                break
    return None


def _candidates(model: OpenModel) -> Iterator[Sizes]:
    likely = {dim: _likely(model, dim) for dim in model.dims}
    yield likely
    for size in _OTHERS:
        yield {dim: _BATCH if likely[dim] == _BATCH else size for dim in likely}
    yield dict.fromkeys(likely, _BATCH)


def _likely(model: OpenModel, dim: str) -> int:
    """Return a likely size: the batch comes first, sides are the two last dims of four."""
    position, rank = next(
        (dims.index(dim), len(dims)) for dims in map(model.input_dims, model.inputs) if dim in dims
    )
    if position == 0 and rank > 1:
        return _BATCH
    return _SIDE if rank == 4 and position >= 2 else _SEQUENCE
