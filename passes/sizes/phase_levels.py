"""Find the first phase in which each op can run and each size is known."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.decided_sizes import DecideSizesOp, symbols_mentioned
from braid.dialects.braid.sizes import value_sizes
from braid.support.errors import BraidError
from braid.support.sizes.expression import Size, symbols_of


@dataclass
class PhaseLevels:
    """The first phase in which each op can run, and each symbol is known."""

    of_op: dict[Operation, int]
    of_symbol: dict[str, int]
    decided: set[SSAValue]
    """The values whose elements are sizes."""

    @staticmethod
    def of(function: FuncOp) -> "PhaseLevels":
        """Return the levels of a function's ops.

        Raises BraidError for a size that is used before it is decided, or decided twice.
        """
        block = function.body.block
        decided = {n for op in block.ops if isinstance(op, DecideSizesOp) for n in op.names}
        of_inputs = {name for names in value_sizes(function) for name in names}
        for argument in block.args:
            sizes = (e for e in extents_of(argument) if isinstance(e, Size))
            of_inputs |= symbols_of(*sizes)
        pairs = zip(block.args, value_sizes(function), strict=True)
        levels = PhaseLevels({}, {}, {argument for argument, names in pairs if names})
        for op in block.ops:
            if isinstance(op, ReturnOp):
                continue
            mentioned = symbols_mentioned(op)
            if isinstance(op, DecideSizesOp):
                levels._decide(op, of_inputs)
                continue
            if early := sorted((mentioned & decided) - levels.of_symbol.keys()):
                raise BraidError(
                    f"'{op.name}' op has size '{early[0]}', which is decided after it",
                    location=source_location(op),
                )
            before = [levels.of_value(value) for value in captured_values(op)]
            before += [levels.of_symbol.get(name, 0) for name in mentioned]
            levels.of_op[op] = max(before, default=0)
        return levels

    def _decide(self, op: DecideSizesOp, of_inputs: set[str]) -> None:
        if op.values in self.decided:
            raise BraidError(
                "the elements of a tensor are decided twice",
                location=source_location(op),
                hint="use the sizes of the first op",
            )
        self.decided.add(op.values)
        if taken := sorted(of_inputs & set(op.names)):
            raise BraidError(
                f"size '{taken[0]}' is decided, and is one of an input",
                location=source_location(op),
                hint="give it another name",
            )
        for name in op.names:
            if name in self.of_symbol:
                raise BraidError(
                    f"size '{name}' is decided twice",
                    location=source_location(op),
                    hint="give the second one another name, and slice to the smaller of both",
                )
            self.of_symbol[name] = self.of_value(op.values) + 1
        self.of_op[op] = self.of_value(op.values)

    def of_value(self, value: SSAValue) -> int:
        """Return the phase in which a value is made, 0 for an argument."""
        return self.of_op[value.owner] if isinstance(value.owner, Operation) else 0

    @property
    def count(self) -> int:
        """Return how many phases there are."""
        return 1 + max((*self.of_op.values(), *self.of_symbol.values()))


def captured_values(op: Operation) -> Iterator[SSAValue]:
    """Yield the outside values that an op or its nested ops read."""
    ops = list(op.walk())
    inside = set(ops)
    for operand in (operand for each in ops for operand in each.operands):
        owner = operand.owner
        if (owner.parent_op() if isinstance(owner, Block) else owner) not in inside:
            yield operand
