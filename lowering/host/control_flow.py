"""Control flow of a program: `scf` ops on scalars, with copies of the tensors they hand on.

The tensors that a branch gives, or that a loop carries, are in buffers that the plan names, so only
scalars are results and arguments of what is emitted. Before each iteration a loop checks whether
the run is to end, since a model may have any number of iterations.
"""

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.structure.handed_values import forwarded
from braid.dialects.braid.attribute_names import CARRIED_BUFFERS, STAGING_BUFFERS
from braid.lowering.host.branch_checks import BranchChecks
from braid.lowering.host.environment import Environment
from braid.lowering.host.pointers import PointerBuilder
from braid.lowering.host.profile_counters import ProfileCounters
from braid.lowering.host.values import Values, buffers_of, scalars

EmitOp = Callable[[Operation, PointerBuilder], None]
"""Emits an op of the source, of whatever kind."""


_ControlFlowOp = scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp


class ControlFlow:
    """Emits branches and loops of `scf`, with `emit_op` for the ops in their regions."""

    def __init__(
        self,
        environment: Environment,
        values: Values,
        counters: ProfileCounters,
        checks: BranchChecks,
        emit_op: EmitOp,
    ) -> None:
        self._environment = environment
        self._values = values
        self._counters = counters
        self._checks = checks
        self._emit_op = emit_op

    def emit(self, op: _ControlFlowOp, builder: PointerBuilder) -> None:
        """Emit `op`, which counts itself and each time one of its regions is entered."""
        self._values.bind_results(op)
        self._counters.count(op, builder)
        match op:
            case scf.IfOp():
                emitted = self._if(op)
            case scf.IndexSwitchOp():
                emitted = self._switch(op)
            case scf.ForOp():
                emitted = self._for(op, builder)
            case scf.WhileOp():
                emitted = self._while(op, builder)
        results = builder.insert(emitted).results
        if isinstance(op, scf.ForOp):  # whose number is carried, too
            results = results[1:]
        self._values.bind_scalars(op.results, results)

    def _if(self, op: scf.IfOp) -> Operation:
        taken, other = (
            self._branch(op, region, key)
            for region, key in zip(op.regions, ("then", "else"), strict=True)
        )
        return scf.IfOp(self._values.scalars[op.cond], _scalar_types(op.results), taken, other)

    def _switch(self, op: scf.IndexSwitchOp) -> Operation:
        cases = [self._branch(op, each, str(n)) for n, each in enumerate(op.case_regions)]
        default = self._branch(op, op.default_region, "default")
        types = _scalar_types(op.results)
        return scf.IndexSwitchOp(self._values.scalars[op.arg], op.cases, default, cases, types)

    def _for(self, op: scf.ForOp, builder: PointerBuilder) -> Operation:
        values, (number, *carried) = self._values, op.body.block.args
        self._counters.enter(op, "enter", builder)
        initial = self._enter(op.iter_args, op.results, carried, builder)
        lower, upper, step = (values.scalars[value] for value in (op.lb, op.ub, op.step))
        upper = _end_of(lower, upper, step, builder)
        types = [op.lb.type, *(value.type for value in initial)]
        head, body = Block(arg_types=types), Block(arg_types=types)
        at_head = PointerBuilder(InsertPoint.at_end(head))
        more = at_head.emit(arith.CmpiOp(head.args[0], upper, "slt"))
        more = at_head.emit(arith.AndIOp(more, self._environment.goes_on(at_head)))
        at_head.insert(scf.ConditionOp(more, *head.args))
        values.bind_scalars([number, *carried], body.args)
        at_body = PointerBuilder(InsertPoint.at_end(body))
        self._counters.enter(op, "next", at_body)
        left = at_body.emit(arith.SubiOp(upper, body.args[0]))
        step = at_body.emit(arith.MinUIOp(step, left))  # so that no number wraps around
        following = at_body.emit(arith.AddiOp(body.args[0], step))
        self._fill(body, op.body.block, carried, following)
        return scf.WhileOp([lower, *initial], types, Region(head), Region(body))

    def _while(self, op: scf.WhileOp, builder: PointerBuilder) -> Operation:
        values, before, after = self._values, op.before_region.block, op.after_region.block
        self._counters.enter(op, "enter", builder)
        values.bind_buffers(before.args, buffers_of(op, CARRIED_BUFFERS, len(op.results)))
        for argument, result in zip(after.args, op.results, strict=True):
            if isinstance(result.type, TensorType):
                values.tensors[argument] = values.tensors[result]
        initial = self._enter(op.arguments, before.args, before.args, builder)
        head = Block(arg_types=[value.type for value in initial])
        values.bind_scalars(before.args, head.args)
        self._fill(head, before, op.results)
        body = Block(arg_types=_scalar_types(after.args))
        values.bind_scalars(after.args, body.args)
        self._counters.enter(op, "next", PointerBuilder(InsertPoint.at_end(body)))
        self._fill(body, after, before.args)
        return scf.WhileOp(initial, _scalar_types(op.results), Region(head), Region(body))

    def _enter(
        self,
        initial: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
        builder: PointerBuilder,
    ) -> list[SSAValue]:
        """Copy tensors into the buffers of the loop, and return the scalars to carry."""
        tensors = self._values.tensors
        for value, slot, argument in zip(initial, carried, arguments, strict=True):
            if isinstance(value.type, TensorType):
                tensors[argument] = tensors[slot]
                self._values.copy(value, tensors[value], tensors[slot], builder)
        return [self._values.scalars[value] for value in scalars(initial)]

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp, region: Region, key: str) -> Region:
        block = Block()
        builder = PointerBuilder(InsertPoint.at_end(block))
        self._counters.enter(op, key, builder)
        if not region.blocks:
            block.add_op(scf.YieldOp())
            return Region(block)
        checks = self._checks.of(op, op.regions.index(region))
        if not checks:
            self._fill(block, region.block, op.results)
            return Region(block)
        inside = Block()
        self._fill(inside, region.block, op.results)
        types = _scalar_types(op.results)
        guarded = self._checks.guarded(checks, types, Region(inside), builder)
        builder.insert(scf.YieldOp(*guarded))
        return Region(block)

    def _fill(
        self, block: Block, source: Block, targets: Sequence[SSAValue], *first: SSAValue
    ) -> None:
        """Emit `source` into `block`; its terminator passes its values on to `targets`.

        Scalars that are no values of the source are passed on as the `first` ones.
        """
        builder = PointerBuilder(InsertPoint.at_end(block))
        terminator = source.last_op
        assert terminator is not None
        for op in source.ops:
            if op is not terminator:
                self._emit_op(op, builder)
        self._hand_on(terminator, targets, builder)
        known = self._values.scalars
        handed = [*first, *(known[value] for value in forwarded(terminator) if value in known)]
        if isinstance(terminator, scf.ConditionOp):
            goes_on = self._environment.goes_on(builder)
            more = builder.emit(arith.AndIOp(known[terminator.condition], goes_on))
            builder.insert(scf.ConditionOp(more, *handed))
        else:
            builder.insert(scf.YieldOp(*handed))

    def _hand_on(
        self, terminator: Operation, targets: Sequence[SSAValue], builder: PointerBuilder
    ) -> None:
        """Copy to all targets at once: what a copy may overwrite is staged first."""
        values, tensors = forwarded(terminator), self._values.tensors
        staging = buffers_of(terminator, STAGING_BUFFERS, len(values))
        sources = dict(tensors)
        for value, buffer in zip(values, staging, strict=True):
            if buffer is not None:
                sources[value] = self._values.buffers.address(buffer)
                self._values.copy(value, tensors[value], sources[value], builder)
        for value, target in zip(values, targets, strict=True):
            if isinstance(value.type, TensorType):
                self._values.copy(value, sources[value], tensors[target], builder)


def _end_of(lower: SSAValue, upper: SSAValue, step: SSAValue, builder: PointerBuilder) -> SSAValue:
    """Return the upper bound of a loop; one without a positive step is not entered."""
    zero = builder.emit(arith.ConstantOp(IntegerAttr(0, cast(IndexType, step.type))))
    forward = builder.emit(arith.CmpiOp(step, zero, "sgt"))
    return builder.emit(arith.SelectOp(forward, upper, lower))


def _scalar_types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in scalars(values)]
