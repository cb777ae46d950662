"""Nests of decision trees: every row walks down every tree, and adds up the leaves."""

from dataclasses import dataclass

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.lines import single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.tree_ensemble import TreeEnsembleOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class TreesNest:
    """`rows` of `features`; each walks down the `trees` of every one of the `groups`.

    A walk takes at most `depth` steps among `nodes`; the first `leaves` nodes have `classes`
    weights each. `kind` combines those that one row finds in one group.
    """

    rows: Extent
    features: int
    groups: int
    trees: int
    nodes: int
    leaves: int
    classes: int
    depth: int
    kind: str
    tracks_missing: bool


def trees_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> TreesNest | None:
    """Return the trees that a group of one op is; None if the group is no tree
    ensemble or has no rows."""
    op = single_op(group, TreeEnsembleOp)
    if op is None or len(group.results) != 1 or len(set(op.operands)) != len(op.operands):
        return None
    rows = extents_of(op.features)[0]
    if not has_elements([rows]):
        return None
    (nodes, _), (groups, trees) = shape_of(op.nodes), shape_of(op.roots)
    leaves, classes = shape_of(op.weights)
    return TreesNest(
        rows,
        shape_of(op.features)[1],
        groups,
        trees,
        nodes,
        leaves,
        classes,
        op.depth.value.data,
        op.kind.data,
        bool(op.tracks_missing.value.data),
    )
