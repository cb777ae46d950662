"""`cse`: repeated computations are merged.

Available expressions are looked up in a stack of scopes that follows the dominator tree, as in
MLIR's own pass (and in P. Briggs, K. Cooper, L. T. Simpson, "Value Numbering", 1997, section 4).
A read is available until the next op that may write: a counter of the writes seen so far, kept
with each read, gives that in constant time.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove, IsTerminator, MemoryEffectKind, get_effects
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from braid.analysis.structure.dominance import DominatorTree
from braid.dialects.braid.names import union_names
from braid.passes.canonicalize.equivalence import op_key

_Key = tuple[object, ...]


class _Scopes:
    """Available ops by key: a chain of dictionaries, flattened into one with an undo log."""

    def __init__(self) -> None:
        self._available: dict[_Key, list[Operation]] = {}
        self._log: list[_Key] = []

    def enter(self) -> int:
        return len(self._log)

    def leave(self, mark: int) -> None:
        while len(self._log) > mark:
            self._available[self._log.pop()].pop()

    def find(self, key: _Key) -> Operation | None:
        """Return the op that was added last."""
        ops = self._available.get(key)
        return ops[-1] if ops else None

    def add(self, key: _Key, op: Operation) -> None:
        self._available.setdefault(key, []).append(op)
        self._log.append(key)


class _Eliminator:
    def __init__(self) -> None:
        self._scopes = _Scopes()
        self._writes = 0
        self._writes_before_read: dict[Operation, int] = {}

    def visit_op_regions(self, op: Operation) -> None:
        outer = self._scopes
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=True):
            self._scopes = _Scopes()
        for region in op.regions:
            self._visit_region(region)
        self._scopes = outer

    def _visit_region(self, region: Region) -> None:
        """Visit the blocks in preorder of the dominator tree, each in the scope of its idom."""
        tree = DominatorTree(region)
        stack = [(block, False) for block in tree.preorder[:1]]
        marks: list[int] = []
        while stack:
            block, visited = stack.pop()
            if visited:
                self._scopes.leave(marks.pop())
                continue
            marks.append(self._scopes.enter())
            self._visit_block(block)
            stack.append((block, True))
            stack.extend((child, False) for child in tree.children(block))

    def _visit_block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op.regions:
                self.visit_op_regions(op)
            self._visit_op(op)
            op = following

    def _visit_op(self, op: Operation) -> None:
        if is_trivially_dead(op):
            _erase(op)
            return
        effects = get_effects(op)
        if effects is None or any(e.kind is not MemoryEffectKind.READ for e in effects):
            self._writes += 1
            return
        if op.has_trait(IsTerminator):
            return
        key = op_key(op)
        earlier = self._scopes.find(key)
        if earlier is not None and self._still_valid(earlier, op):
            _merge(earlier, op)
            return
        if effects:
            self._writes_before_read[op] = self._writes
        self._scopes.add(key, op)

    def _still_valid(self, earlier: Operation, op: Operation) -> bool:
        """Return whether nothing can have overwritten what `earlier` read before `op` reads it."""
        writes = self._writes_before_read.get(earlier)
        return writes is None or (earlier.parent is op.parent and writes == self._writes)


def _merge(earlier: Operation, op: Operation) -> None:
    # The regions are equal op by op, so the names of nested ops pair up as well.
    for kept, dropped in zip(earlier.walk(), op.walk(), strict=True):
        union_names(kept, dropped)
    for kept, dropped in zip(earlier.results, op.results, strict=True):
        dropped.replace_all_uses_with(kept)
    _erase(op)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


@dataclass(frozen=True)
class CSEPass(ModulePass):
    """Merges ops that compute the same, and removes ops whose results are not used.

    Ops are the same if they differ in nothing but their results and their stable names; the op
    that stays gets the names of both (`braid.name`). Ops that only read memory are merged
    within a block as long as nothing may have written in between; others are left alone.

    ```mlir
    %1 = arith.addi %x, %y {braid.name = "a"} : i32   // {braid.name = ["a", "b"]}
    %2 = arith.addi %x, %y {braid.name = "b"} : i32   // uses of %2 become uses of %1
    ```
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Eliminate common subexpressions in every region of `op`."""
        _Eliminator().visit_op_regions(op)
