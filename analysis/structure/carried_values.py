"""Find the values that control flow passes on, with their places inside and after the op."""

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue


@dataclass(frozen=True)
class Carried:
    """A value that control flow passes on: one layout for all `makes` and all it reads.

    `reads` are operands, as pairs of an op and an operand number. A function whose signature may
    change forwards its arguments, which it only defines, and its results, which it only reads.
    """

    owner: Operation
    slot: int
    makes: tuple[SSAValue, ...]
    reads: tuple[tuple[Operation, int], ...]

    @property
    def value(self) -> SSAValue:
        """One of the values; all have its type."""
        if self.makes:
            return self.makes[0]
        user, index = self.reads[0]
        return user.operands[index]


def carried_values(
    op: scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp,
) -> list[Carried]:
    """Return the tensors that `op` passes on, numbered; those of a while's second region
    come last.
    """
    rows: list[tuple[tuple[SSAValue, ...], tuple[tuple[Operation, int], ...]]] = []
    if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
        yields = [terminator_of(region.block) for region in op.regions if region.blocks]
        for index, result in enumerate(op.results):
            rows.append(((result,), tuple((end, index) for end in yields)))
    elif isinstance(op, scf.ForOp):
        body = op.body.block
        for index, result in enumerate(op.results):
            bounds = 3  # The operands before the initial values are the bounds and the step.
            reads = ((op, bounds + index), (terminator_of(body), index))
            rows.append(((body.args[index + 1], result), reads))
    else:
        before, after = op.before_region.block, op.after_region.block
        for index, argument in enumerate(before.args):
            rows.append(((argument,), ((op, index), (terminator_of(after), index))))
        for index, result in enumerate(op.results):
            condition = 1  # The first operand of the terminator says whether to go on.
            reads = ((terminator_of(before), condition + index),)
            rows.append(((after.args[index], result), reads))
    return [
        Carried(op, slot, makes, reads)
        for slot, (makes, reads) in enumerate(rows)
        if isinstance(makes[0].type, TensorType)
    ]


def terminator_of(block: Block) -> Operation:
    """Return the last op of a block that ends with one that hands on."""
    assert block.last_op is not None
    return block.last_op
