"""Which op it is: text that is equal for ops that compute the same."""

from xdsl.ir import Block, Operation

from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.targets.kernels.keys import canonical_kernel_text


def op_text(op: Operation) -> str:
    """The canonical text of a group that `op` is alone in, whatever layouts its types say."""
    if isinstance(op, FusedOp):
        return canonical_kernel_text(op)
    read = list(dict.fromkeys(op.operands))
    types = [value.type for value in read]
    body, outside = Block(arg_types=types), Block(arg_types=types)
    copy = op.clone(dict(zip(read, body.args, strict=True)))
    body.add_ops([copy, YieldOp(*copy.results)])
    group = FusedOp(outside.args, [result.type for result in copy.results], body)
    outside.add_op(group)
    return canonical_kernel_text(group)
