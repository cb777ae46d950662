"""Ops of `.mlir` models that no dialect has which braid compiles, and those that are nearest."""

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.ir import Operation

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid import Braid
from braid.frontends.mlir.files import MLIRSyntaxError
from braid.passes.conversion.refused import missing_foreign_op
from braid.passes.stablehlo.node import CONVERTERS as STABLEHLO
from braid.passes.tosa.node import CONVERTERS as TOSA
from braid.support.errors import BraidError
from braid.support.unsupported_ops import UnsupportedNodes, UnsupportedNodesError, missing_op

_CONVERTED = {"chlo": STABLEHLO, "stablehlo": STABLEHLO, "tosa": TOSA}


def missing_ops(context: Context, ops: Iterable[Operation]) -> UnsupportedNodesError:
    """Return the error about `ops`, one or more, none of which braid compiles."""
    nodes = UnsupportedNodes()
    for op in ops:
        name = op_name(op)
        nodes.add(name, missing_foreign_op(op, _known_ops(context, name)))
    return nodes.error()


def unregistered(context: Context, error: BraidError) -> BraidError:
    """Return the message that replaces a parser's error about an op that it does not know."""
    op = error.op if isinstance(error, MLIRSyntaxError) else ""
    if not op:
        return error
    hint = missing_op(op, _known_ops(context, op)).hint
    return MLIRSyntaxError(error.message, location=error.location, hint=hint, notes=error.notes)


def _known_ops(context: Context, op: str) -> list[str]:
    """Return the ops that may have been meant by `op`: those of its dialect, else of braid's."""
    dialect = op.partition(".")[0]
    if dialect in _CONVERTED:
        return _CONVERTED[dialect].names()
    if dialect not in context.registered_dialect_names:
        return [each.name for each in Braid.operations]
    return [each.name for each in context.get_dialect(dialect).operations]
