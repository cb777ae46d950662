"""`collect-size-checks`: the assumptions of a function's ops about open sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS, SIZE_CHECKS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.size_facts import SizeFact, collecting_facts
from braid.dialects.braid.sizes import SizesAttr, assumptions_of, is_open, symbols_used
from braid.support.errors import BraidError
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import symbol


@dataclass(frozen=True)
class CollectSizeChecksPass(ModulePass):
    """Write down what each run of a function has to check about its sizes.

    The rules of shapes ask whether sizes are equal, or one is at most another. If neither follows
    from the assumptions about symbols, the op is valid at some sizes only. Run it while the ops are
    those of the model: later ops are valid where these are.

    The ranges that are assumed of symbols are checked too: proofs rely on them.

    In: functions with open sizes. Out: `braid.size_checks` on each of them, empty where nothing is
    to be checked; without the attribute no program is made. A check that only one branch of a
    conditional op needs is in its `braid.branch_size_checks`. Raises BraidError where something
    never holds.

    ```mlir
    %y = braid.add %a, %b : (tensor<?xf32, #braid.sizes<["n"]>>, tensor<?xf32, #braid.sizes<["m"]>>)
    // braid.size_checks = [{size = #braid.sizes<["n - m"]>, zero = true, message = "… n = m"}]
    ```
    """

    name = "collect-size-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Collect the checks of every function."""
        functions = [each for each in op.ops if isinstance(each, FuncOp) and is_open(each)]
        for function in functions:
            checks: _Checks = {}
            for block in function.body.blocks:
                _add_checks(block, assumptions_of(function), checks)
            entries = [*_range_checks(function), *checks.values()]
            function.attributes[SIZE_CHECKS] = ArrayAttr(entries)


def _range_checks(function: FuncOp) -> Iterator[DictionaryAttr]:
    """Yield the checks of the assumptions about each symbol: proofs of other facts rely on them."""
    used = symbols_used(function)
    for name, own in assumptions_of(function).symbols:
        if name not in used:
            continue
        size = symbol(name)
        if own.minimum:
            fact = SizeFact(own.minimum, size, is_equality=False)
            yield _check(fact, f"size '{name}' must be at least {own.minimum}")
        if own.maximum is not None:
            fact = SizeFact(size, own.maximum, is_equality=False)
            yield _check(fact, f"size '{name}' must be at most {own.maximum}")
        if own.multiple_of != 1:
            fact = SizeFact(size % own.multiple_of, 0, is_equality=True)
            yield _check(fact, f"size '{name}' must be a multiple of {own.multiple_of}")


_Checks = dict[SizeFact, DictionaryAttr]
"""The check of each fact that nothing proves, with the first op that needs it."""


def _add_checks(block: Block, assumed: Assumptions, checks: _Checks) -> Assumptions:
    """Add the needs of a block's ops to `checks`; return the facts that follow.

    Checks of all branches of a conditional op are needed before it: passes may hoist ops with which
    all branches begin.
    """
    for op in block.ops:
        if isinstance(op, TensorOp):
            assumed = _add_facts(op, assumed, checks)
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            branches: list[_Checks] = [{} for _ in op.regions]
            for region, own in zip(op.regions, branches, strict=True):
                for inner in region.blocks:
                    _add_checks(inner, assumed, own)
            first, *others = branches
            for fact in [fact for fact in first if all(fact in other for other in others)]:
                checks[fact] = first[fact]
                assumed = _with(fact, assumed)
            rest = [[own[fact] for fact in own if fact not in checks] for own in branches]
            op.attributes.pop(BRANCH_SIZE_CHECKS, None)
            if any(rest):
                op.attributes[BRANCH_SIZE_CHECKS] = ArrayAttr(ArrayAttr(own) for own in rest)
        else:
            for inner in (inner for region in op.regions for inner in region.blocks):
                assumed = _add_checks(inner, assumed, checks)
    return assumed


def _add_facts(op: TensorOp, assumed: Assumptions, checks: _Checks) -> Assumptions:
    with collecting_facts() as facts:
        op.verify(verify_nested_ops=False)
    for fact in facts:
        answer = _answer(fact, assumed)
        if answer is Answer.NO:
            raise BraidError(
                f"'{op.name}' needs {fact}, which the sizes of the function exclude",
                location=source_location(op),
            )
        if answer is Answer.UNKNOWN and fact not in checks:
            named = ", ".join(names_of(op))
            where = f"'{named}' ({op.name})" if named else f"'{op.name}'"
            checks[fact] = _check(fact, f"{where} needs {fact}")
            assumed = _with(fact, assumed)
    return assumed


def _with(fact: SizeFact, assumed: Assumptions) -> Assumptions:
    """Return the assumptions with a fact that is checked: others may follow from it."""
    if fact.is_equality:
        assumed = assumed.with_fact(-fact.size)
    return assumed.with_fact(fact.size)


def _answer(fact: SizeFact, assumed: Assumptions) -> Answer:
    question = assumed.equal if fact.is_equality else assumed.at_most
    return question(fact.left, fact.right)


def _check(fact: SizeFact, message: str) -> DictionaryAttr:
    entries: dict[str, Attribute] = {"size": SizesAttr.of([fact.size])}
    if fact.is_equality:
        entries["zero"] = BoolAttr.from_bool(True)
    return DictionaryAttr({**entries, "message": StringAttr(message)})
