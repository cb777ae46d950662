"""Ops of other dialects that cannot be converted, reported by one error."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import op_name
from braid.support.errors import BraidError, UnsupportedError
from braid.support.unsupported_ops import MissingOpError, UnsupportedNodes, missing_op


def missing_foreign_op(op: Operation, known: Iterable[str]) -> MissingOpError:
    """Return the error about an op of a dialect from which braid converts the `known` ones."""
    name = op_name(op)
    value = op.results[0].name_hint if op.results else None
    return missing_op(
        name,
        known,
        subject=f"'%{value}'" if value else "",
        origin=f"dialect '{name.partition('.')[0]}'",
        location=source_location(op),
        hint="rewrite it as other ops before, for instance by a pass of upstream",
    )


class Refused:
    """The ops that were refused, while what does not depend on them is converted."""

    def __init__(self) -> None:
        self._nodes = UnsupportedNodes()
        self._ops = set[Operation]()

    @contextmanager
    def noting(self, op: Operation) -> Generator[None]:
        """Note the error raised while `op` is converted, for `require_none`.

        An error that another op before it may have caused is left out, unless braid does not have
        `op` at all. An invalid op is raised at once, if no op was refused before.
        """
        depends = self._depends(op)
        try:
            yield
        except UnsupportedError as error:
            is_missing = isinstance(error, MissingOpError) and not op.has_trait(IsTerminator)
            if not depends or is_missing:
                self._nodes.add(op_name(op), error)
            self._ops.add(op)
        except BraidError:
            if not self._ops:
                raise
            self._ops.add(op)

    def _depends(self, op: Operation) -> bool:
        """Return whether `op` is in a refused op, or takes a result of one."""
        if not self._ops:
            return False
        above = op.parent_op()
        while above is not None and above not in self._ops:
            above = above.parent_op()
        return above is not None or any(value.owner in self._ops for value in op.operands)

    def require_none(self) -> None:
        """Raise `UnsupportedNodesError` for all that were refused, if there are any."""
        if self._nodes:
            raise self._nodes.error()
