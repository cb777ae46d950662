"""Dominator trees against the definition, on random control flow graphs."""

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.dialects.test import TestTermOp as BranchOp
from xdsl.ir import Block, Region

from braid.analysis.structure.dominance import DominatorTree


def region_of(successors: list[list[int]]) -> Region:
    blocks = [Block() for _ in successors]
    for block, targets in zip(blocks, successors, strict=True):
        block.add_op(BranchOp(successors=[blocks[target] for target in targets]))
    return Region(blocks)


def reachable(successors: list[list[int]], removed: int | None) -> set[int]:
    """Nodes on paths from node 0 that avoid `removed`."""
    seen: set[int] = set()
    stack = [] if removed == 0 else [0]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [target for target in successors[node] if target != removed]
    return seen


def parents_in(tree: DominatorTree) -> dict[Block, Block]:
    """Return the immediate dominators, by the children of each block."""
    return {child: block for block in tree.preorder for child in tree.children(block)}


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 9))
    # Nothing branches to the entry block, as in MLIR.
    targets = st.lists(st.integers(1, size - 1), max_size=3) if size > 1 else st.just([])
    return [draw(targets) for _ in range(size)]


@given(graphs())
def test_dominance_is_that_every_path_passes_through(successors: list[list[int]]) -> None:
    region = region_of(successors)
    tree = DominatorTree(region)
    from_entry = reachable(successors, None)
    for a, block_a in enumerate(region.blocks):
        assert (block_a in tree.preorder) == (a in from_entry)
        avoiding_a = reachable(successors, a)
        for b, block_b in enumerate(region.blocks):
            expected = a == b or b not in from_entry or (a in from_entry and b not in avoiding_a)
            assert tree.dominates(block_a, block_b) == expected, (a, b)


@given(graphs())
def test_the_immediate_dominator_is_the_closest(successors: list[list[int]]) -> None:
    region = region_of(successors)
    tree = DominatorTree(region)
    parents = parents_in(tree)
    assert set(parents) == set(tree.preorder[1:])
    for block, idom in parents.items():
        assert idom is not block and tree.dominates(idom, block)
        for other in tree.preorder:
            if other is not block and tree.dominates(other, block):
                assert tree.dominates(other, idom)


def test_preorder_puts_dominators_first_and_holds_the_reachable_blocks() -> None:
    region = region_of([[1, 2], [3], [3], [], [3]])
    tree = DominatorTree(region)
    position = {block: index for index, block in enumerate(tree.preorder)}
    assert set(position) == set(list(region.blocks)[:4])
    for block in tree.preorder[1:]:
        assert position[parents_in(tree)[block]] < position[block]


def test_an_empty_region_has_an_empty_tree() -> None:
    assert DominatorTree(Region()).preorder == ()


def test_a_deep_chain_of_blocks_needs_no_recursion() -> None:
    size = 5000
    tree = DominatorTree(region_of([[i + 1] for i in range(size - 1)] + [[]]))
    assert len(tree.preorder) == size
    assert tree.dominates(tree.preorder[0], tree.preorder[-1])


def test_a_block_without_a_terminator_has_no_successors() -> None:
    block = Block([AnyOp()])
    tree = DominatorTree(Region([block]))
    assert tree.preorder == (block,)
