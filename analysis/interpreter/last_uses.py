"""Find the last uses of the values of a block."""

from xdsl.ir import Block, Operation, SSAValue


def last_uses(block: Block) -> dict[Operation, tuple[SSAValue, ...]]:
    """Return for every op of `block` the values of the block that no later op uses.

    A use inside a region counts as one by the op of the block that holds the region. A result
    that is never used dies at its own op, an unused block argument at the first op. The
    operands of the terminator are left out: whoever runs the block takes them.
    """
    last: dict[SSAValue, Operation] = {}
    first = block.first_op
    if first is not None:
        last.update(dict.fromkeys(block.args, first))
    for op in block.ops:
        last.update(dict.fromkeys(op.results, op))
        for nested in op.walk():
            for operand in nested.operands:
                if operand in last:
                    last[operand] = op
    deaths: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        if op is not block.last_op:
            deaths.setdefault(op, []).append(value)
    return {op: tuple(values) for op, values in deaths.items()}
