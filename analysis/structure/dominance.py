"""Dominance: which blocks every path to a block passes through.

The tree is built by the algorithm of K. Cooper, T. Harvey and K. Kennedy, "A Simple, Fast
Dominance Algorithm" (2001). Queries are answered in constant time by numbering the tree in
preorder: a dominates b exactly where b's number lies in the interval of a's subtree.
"""

from collections.abc import Sequence

from xdsl.ir import Block, Region


class DominatorTree:
    """The dominator tree of the blocks of one region.

    Blocks that cannot be reached from the entry block are not in the tree. As usual, every block
    dominates an unreachable one, since no path leads there.
    """

    def __init__(self, region: Region) -> None:
        order = _reverse_postorder(region)
        number = {block: index for index, block in enumerate(order)}
        idoms = _immediate_dominators(_predecessors(order, number))
        self._idoms = {block: order[idom] for block, idom in zip(order, idoms, strict=True)}
        self._children: dict[Block, list[Block]] = {block: [] for block in order}
        for block in order[1:]:
            self._children[self._idoms[block]].append(block)
        self.preorder: tuple[Block, ...] = self._walk(order[:1])
        """The reachable blocks, every dominator before the blocks that it dominates."""
        self._begin = {block: index for index, block in enumerate(self.preorder)}
        self._end = self._subtree_ends()

    def _walk(self, roots: Sequence[Block]) -> tuple[Block, ...]:
        blocks: list[Block] = []
        stack = list(roots)
        while stack:
            block = stack.pop()
            blocks.append(block)
            stack.extend(reversed(self._children[block]))
        return tuple(blocks)

    def _subtree_ends(self) -> dict[Block, int]:
        ends = {block: index + 1 for index, block in enumerate(self.preorder)}
        for block in reversed(self.preorder[1:]):
            idom = self._idoms[block]
            ends[idom] = max(ends[idom], ends[block])
        return ends

    def children(self, block: Block) -> Sequence[Block]:
        """Return the blocks whose immediate dominator is the reachable `block`."""
        return self._children[block]

    def dominates(self, a: Block, b: Block) -> bool:
        """Return whether every path from the entry to `b` passes through `a`; reflexive."""
        if a is b or b not in self._begin:
            return True
        if a not in self._begin:
            return False
        return self._begin[a] <= self._begin[b] < self._end[a]


def _successors(block: Block) -> Sequence[Block]:
    return block.last_op.successors if block.last_op is not None else ()


def _reverse_postorder(region: Region) -> list[Block]:
    """Return the blocks reachable from the entry; depth first, without recursion."""
    if region.first_block is None:
        return []
    postorder: list[Block] = []
    seen = {region.first_block}
    stack = [(region.first_block, iter(_successors(region.first_block)))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            postorder.append(block)
            stack.pop()
    return postorder[::-1]


def _predecessors(order: Sequence[Block], number: dict[Block, int]) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in order]
    for index, block in enumerate(order):
        for successor in _successors(block):
            predecessors[number[successor]].append(index)
    return predecessors


def _immediate_dominators(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Return the immediate dominators of nodes numbered in reverse postorder; the entry, 0, is its
    own.
    """
    unknown = -1
    idoms = [unknown] * len(predecessors)
    if idoms:
        idoms[0] = 0
    changed = True
    while changed:
        changed = False
        for node in range(1, len(predecessors)):
            known = [p for p in predecessors[node] if idoms[p] != unknown]
            idom = known[0]
            for other in known[1:]:
                idom = _nearest_common_ancestor(idoms, idom, other)
            if idoms[node] != idom:
                idoms[node] = idom
                changed = True
    return idoms


def _nearest_common_ancestor(idoms: Sequence[int], a: int, b: int) -> int:
    while a != b:
        while a > b:
            a = idoms[a]
        while b > a:
            b = idoms[b]
    return a
