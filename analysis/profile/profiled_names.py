"""Derive how often control flow without keys ran from a profile of the named ops beside it.

All ops of a block run equally often, so the first of them in a profile gives the number of runs of
the block. A name that ops of several blocks share is no evidence, nor is an op on parameters alone,
which runs once, when the model is loaded.
"""

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.profile.read_profile import Profile
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import ParameterExpressions, is_leaf
from braid.dialects.braid.names import names_of


class ProfiledNames:
    """Counts that `profile` has of the named ops of `module`."""

    def __init__(self, module: ModuleOp, profile: Profile) -> None:
        self._profile = profile
        self._expressions = ParameterExpressions()
        self._blocks: dict[str, set[Block | None]] = {}
        for op in module.walk():
            for name in names_of(op):
                self._blocks.setdefault(name, set()).add(op.parent)

    def of_op(self, op: Operation) -> float | None:
        """Return how often `op` ran; None where its names give nothing."""
        if is_leaf(op) or (op.results and self._expressions.is_known(op.results[0])):
            return None
        names = [name for name in names_of(op) if self._blocks.get(name) == {op.parent}]
        statistics = self._profile.find(names)
        return None if statistics is None else statistics.count

    def of_block(self, block: Block | None) -> float | None:
        """Return how often `block` ran, by the first op in it that the profile knows."""
        counts = (self.of_op(op) for op in (block.ops if block is not None else ()))
        return next((count for count in counts if count is not None), None)

    def of_condition(self, op: scf.IfOp | scf.IndexSwitchOp) -> float | None:
        """Return how often `op` ran: from the op that makes its condition, else from its block."""
        maker = _maker(op.cond if isinstance(op, scf.IfOp) else op.arg)
        count = self.of_op(maker) if maker is not None and maker.parent is op.parent else None
        return self.of_block(op.parent) if count is None else count


def _maker(value: SSAValue) -> Operation | None:
    """Return the op that computes `value`, after casts, views and the reading of an element."""
    owner = value.owner
    while isinstance(owner, Operation) and not names_of(owner) and _only_hands_on(owner):
        owner = owner.operands[0].owner
    return owner if isinstance(owner, Operation) else None


def _only_hands_on(op: Operation) -> bool:
    return is_view(op) or isinstance(op, tensor.ExtractOp | arith.IndexCastOp)
