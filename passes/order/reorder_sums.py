"""`reorder-sums`: add up terms in the order in which they come, where that lowers the peak."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.dtypes import bytes_of, is_float
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.names import union_names
from braid.dialects.braid.settings import settings_of
from braid.passes.order.trial_order import positions, take_body, trial_order
from braid.support.byte_sizes import format_size

_ROUNDS = 3
"""A different order of sums may make a different order of ops the best one."""


@dataclass(frozen=True)
class Sum:
    """Additions of tensors of one type, the last one first, and their terms from left to right."""

    ops: tuple[ElementwiseOp, ...]
    terms: tuple[SSAValue, ...]


def sums_of(function: func.FuncOp) -> Iterator[Sum]:
    """Return the sums of at least three terms in the function's block, all computed at run time."""
    expressions = ParameterExpressions()
    for op in function.body.block.ops:
        if _is_addition(op) and not any(_is_inner(value) for value in op.results):
            ops: list[ElementwiseOp] = []
            terms: list[SSAValue] = []
            pending: list[SSAValue] = [*op.results]
            while pending:
                value = pending.pop()
                adding = value.owner
                if isinstance(adding, ElementwiseOp) and (adding is op or _is_inner(value)):
                    ops.append(adding)
                    pending += reversed(adding.operands)
                else:
                    terms.append(value)
            # A known number may be there to round what it is added to, and to be taken off again.
            if len(terms) > 2 and not any(expressions.is_known(term) for term in terms):
                yield Sum(tuple(ops), tuple(terms))


def _is_addition(op: object) -> bool:
    """Return whether `op` adds tensors of one type; 16-bit sums would lose more digits in other
    orders.
    """
    if not isinstance(op, ElementwiseOp) or op.ROW.name != "add":
        return False
    element_type = element_type_of(op.output)
    return all(value.type == op.output.type for value in op.operands) and (
        not is_float(element_type) or bytes_of(element_type) >= 4
    )


def _is_inner(value: SSAValue) -> bool:
    """Return whether `value` is part of a larger sum, and of nothing else."""
    use = value.get_user_of_unique_use()
    return (
        use is not None
        and _is_addition(value.owner)
        and _is_addition(use)
        and isinstance(value.owner, Operation)
        and use.parent is value.owner.parent
        and run_together(use, value.owner)
    )


def reorder(function: func.FuncOp, place: dict[Operation, int]) -> int:
    """Add the terms of each sum as their ops stand in `place`; returns how many sums changed."""

    def key(value: SSAValue) -> int:
        return place.get(value.owner, -1) if isinstance(value.owner, Operation) else -1

    changed = 0
    # The last sum comes first: its terms may include the results of earlier sums.
    for total in reversed(list(sums_of(function))):
        terms = sorted(total.terms, key=key)
        if tuple(terms) != total.terms:
            _write(total, terms)
            changed += 1
    return changed


def _write(total: Sum, terms: list[SSAValue]) -> None:
    last = total.ops[0]
    value = terms[0]
    for term in terms[1:]:
        added = elementwise("add", value, term)
        added.location = last.location
        union_names(added, *total.ops)
        Rewriter.insert_op(added, InsertPoint.before(last))
        value = added.output
    last.output.replace_all_uses_with(value)
    for op in total.ops:
        Rewriter.erase_op(op)


@dataclass(frozen=True)
class ReorderSumsPass(ModulePass):
    """Adds the terms of sums in the order in which the best order of ops makes them.

    A term can then be added, and its memory reused, as soon as it exists. Done for a function
    only if the best order found, in a share of `time_limit` seconds, needs less memory then. Run
    it after `split-concats`, before groups are made.

    In: any module. Out: sums of three terms and more, none of which is known at compile time, may
    be rounded in another order; with strict numerics none is.

    ```mlir
    %s = braid.add %a, %b      // %s = braid.add %b, %c
    %t = braid.add %s, %c      // %t = braid.add %s, %a
    ```
    """

    name = "reorder-sums"

    time_limit: float = 5.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite each function that runs with the model, or leave it unchanged."""
        if settings_of(op).is_strict:
            return
        functions = [f for f in runtime_functions(op) if next(sums_of(f), None) is not None]
        for function in functions:
            self._try(function, self.time_limit / (len(functions) * (_ROUNDS + 1)))

    def _try(self, function: func.FuncOp, time_limit: float) -> None:
        before = order = trial_order(function, time_limit)
        count = 0
        for _ in range(_ROUNDS):
            changed = function.clone()
            sums = reorder(changed, positions(changed, order))
            after = trial_order(changed, time_limit)
            if not sums or after.peak >= order.peak:
                break
            take_body(function, changed)
            order, count = after, count + sums
        emit_remark(
            function,
            self.name,
            f"{count} sums reordered; least peak {format_size(order.peak)} instead of "
            f"{format_size(before.peak)}",
            reordered=count,
            peak_bytes=order.peak,
            natural_peak_bytes=before.peak,
        )
