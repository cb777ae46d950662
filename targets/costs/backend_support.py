"""Whether a backend runs the ops of a model, by the `operations` of its description."""

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid import Braid
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.support.errors import BraidError, UnsupportedError
from braid.targets.costs.simulator.steps import is_addressing
from braid.targets.machines.target import BackendDescription


def require_supported(ops: Iterable[Operation], backend: BackendDescription) -> None:
    """Check that `backend` runs each of `ops`, or for a group what is in it.

    What takes no instruction, such as a slice, runs everywhere. Raises BraidError where
    `operations` names an op that braid has not, and UnsupportedError for the first op that does
    not run.
    """
    known = {op.name for op in Braid.operations}
    for name in backend.operations:
        if name.startswith("braid.") and name not in known:
            raise BraidError(f"'operations' of backend '{backend.name}' names '{name}', no op")
    if "*" in backend.operations:
        return
    for op in ops:
        for inner in _computing(op):
            if not backend.supports(inner.name):
                raise UnsupportedError(
                    f"backend '{backend.name}' does not run '{inner.name}'",
                    location=source_location(inner),
                    hint="it is not among the 'operations' of the target's description",
                )


def is_supported(op: Operation, backend: BackendDescription) -> bool:
    """Whether `backend` runs `op`, or for a group all that is in it."""
    return all(backend.supports(inner.name) for inner in _computing(op))


def _computing(op: Operation) -> Iterator[Operation]:
    if isinstance(op, GroupOp):
        for inner in op.body.block.ops:
            yield from _computing(inner)
    elif not op.regions and not isinstance(op, YieldOp | ConstantOp) and not is_addressing(op):
        yield op
