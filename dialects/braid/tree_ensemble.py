"""Decision trees as an op: many walks from a root to a leaf, and the combination of their
leaves."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import (
    BoolAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    f64,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    IndirectOp,
    element_type_of,
    extents_of,
    integer,
    require,
    require_one_of,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, whole
from braid.dialects.braid.dtypes import i1, i64, to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.reduction import UFUNCS
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Literal, Load, Position, Scalar
from braid.dialects.braid.size_limits import MOST_ELEMENTS
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Stage,
    StageSource,
    Structure,
    parallel,
    reduction,
)
from braid.dialects.braid.tiling import Tile

WORDS: Mapping[Attribute, Attribute] = {f32: i32, f64: i64}
"""The type of the words of nodes, by the element type of the features."""
NODE_WORDS = 4
"""The words of a node: its feature, its split, the child if it holds, the child if not."""
TREE_COMBINES = ("add", "minimum", "maximum")
_MOST_DEPTH = 4096


@irdl_op_definition
class TreeEnsembleOp(IndirectOp):
    """The weights of the leaves that each row of features reaches, combined over trees.

    Operands: features `[N, F]` of f32 or f64; nodes `[P, 4]`, integers of the same width; roots
    `[G, T]`, the T trees of each of G groups, places of nodes; weights `[L, C]` of the features'
    type. The first L nodes are the leaves, and have themselves as children. A node has four words:
    2 · feature + m, the bits of the split, the index of the next node if feature ≤ split, and the
    index of the next node otherwise. A NaN takes the first branch if m is 1, which needs
    `tracks_missing`. Result: `[N, G, C]`, of each row and group the sum (`kind` is `add`),
    `minimum` or `maximum` of the weights that its trees lead to in at most `depth` steps. Fails
    verification for other types or ranks, no trees, nodes or features, and another `kind`.

    ```mlir
    %y = braid.tree_ensemble %x, %nodes, %roots, %weights
        {kind = "add", depth = 8 : i64, tracks_missing = false}
        : (tensor<16x4xf32>, tensor<511x4xi32>, tensor<1x9xi32>, tensor<256x3xf32>) ->
        tensor<16x1x3xf32>
    ```
    """

    name = "braid.tree_ensemble"

    features = operand_def(TensorType)
    nodes = operand_def(TensorType)
    roots = operand_def(TensorType)
    weights = operand_def(TensorType)
    kind = attr_def(StringAttr)
    depth = attr_def(IntegerAttr[IntegerType])
    tracks_missing = attr_def(BoolAttr)
    output = result_def(TensorType)

    @staticmethod
    def get(
        features: SSAValue | Operation,
        nodes: SSAValue | Operation,
        roots: SSAValue | Operation,
        weights: SSAValue | Operation,
        kind: str,
        depth: int,
        *,
        tracks_missing: bool,
    ) -> "TreeEnsembleOp":
        """Build the op from plain values."""
        return TreeEnsembleOp.on(
            features,
            nodes,
            roots,
            weights,
            kind=StringAttr(kind),
            depth=integer(depth),
            tracks_missing=IntegerAttr(int(tracks_missing), i1),
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        type = element_type_of(self.features)
        require(type in WORDS, "the features have element type {}, expected f32 or f64", type)
        self._require_tables(type)
        features = extents_of(self.features)
        require(len(features) == 2, f"the features have {len(features)} dims, expected 2")
        is_known = isinstance(features[1], int) and features[1] != DYNAMIC
        require(is_known and features[1] != 0, "the features of a row are open, or none")
        require_one_of("kind", self.kind.data, TREE_COMBINES)
        depth = self.depth.value.data
        require(0 <= depth <= _MOST_DEPTH, f"depth is {depth}, expected 0 to {_MOST_DEPTH}")
        groups, classes = shape_of(self.roots)[0], shape_of(self.weights)[1]
        return [tensor_type(type, [features[0], groups, classes])]

    def _require_tables(self, type: Attribute) -> None:
        """Raise VerifyException for tables of other types or shapes."""
        word = WORDS[type]
        for what, value, expected in (
            ("nodes", self.nodes, word),
            ("roots", self.roots, word),
            ("weights", self.weights, type),
        ):
            actual, shape = element_type_of(value), shape_of(value)
            message = "the {} have element type {}, not {}"
            require(actual == expected, message, what, actual, expected)
            require(
                len(shape) == 2 and min(shape) > 0,
                f"the {what} have shape {list(shape)}, expected two dims that are known, not 0",
            )
        places, words = shape_of(self.nodes)
        require(words == NODE_WORDS, f"nodes have {words} words, expected {NODE_WORDS}")
        leaves = shape_of(self.weights)[0]
        require(leaves <= places, f"there are weights of {leaves} leaves, but {places} nodes")
        require(places <= MOST_ELEMENTS, f"there are {places} nodes")

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Walk all trees of all rows side by side."""
        features, nodes, roots, weights = operands
        rows = np.arange(len(features)).reshape(-1, 1, 1)
        place = np.broadcast_to(roots, (len(features), *roots.shape)).astype(np.int64)
        places, columns = len(nodes) - 1, features.shape[1] - 1
        place = np.clip(place, 0, places)
        for _ in range(self.depth.value.data):
            node = nodes[place]
            value = features[rows, np.clip(node[..., 0] >> 1, 0, columns)]
            split = np.ascontiguousarray(node[..., 1]).view(features.dtype)
            holds = value <= split
            if self.tracks_missing.value.data:
                holds |= np.isnan(value) & (node[..., 0] % 2 != 0)
            place = np.clip(np.where(holds, node[..., 2], node[..., 3]), 0, places)
        leaf = np.minimum(place, len(weights) - 1)
        combine, total = UFUNCS[self.kind.data], None
        for tree in range(roots.shape[1]):
            found = weights[leaf[:, :, tree]].astype(np.float64)
            total = found if total is None else combine(total, found)
        assert total is not None
        return (total.astype(to_numpy(self.result_type().element_type)),)

    def structure(self) -> Structure:
        """Return one stage for each step of all walks, then one that combines the weights."""
        type, rows = element_type_of(self.features), shape_of(self.features)[0]
        word, (groups, trees) = WORDS[type], shape_of(self.roots)
        place, d = Argument(0), [AffineExpr.dimension(i) for i in range(4)]
        walks, identity = (rows, groups, trees), AffineMap.identity(3)
        steps: list[Stage] = []
        for step in range(self.depth.value.data):
            read = Access(OperandSource(2), AffineMap(3, 0, (d[1], d[2])))
            if step:
                read = Access(StageSource(step - 1), identity)
            body = self._step(place, type, word)
            steps.append(Stage(parallel(3), walks, (read,), identity, walks, word, body))
        end = Access(OperandSource(2), AffineMap(4, 0, (d[1], d[3])))
        if steps:
            end = Access(StageSource(len(steps) - 1), AffineMap(4, 0, (d[0], d[1], d[3])))
        shape = self.result_type().get_shape()
        last = Stage(
            parallel(3) + reduction(1),
            (*shape, trees),
            (end,),
            AffineMap(4, 0, (d[0], d[1], d[2])),
            shape,
            type,
            Load(3, (place, Position(2, i64)), type),
            self.kind.data,
        )
        return Structure((*steps, last), (len(steps),))

    def _step(self, place: Scalar, type: Attribute, word: Attribute) -> Scalar:
        """Return the node to which one step leads."""

        def word_of(number: int) -> Scalar:
            return Load(1, (place, Literal(number, i64)), word)

        feature = Apply("shift_right", (word_of(0), Literal(1, word)), word)
        value = Load(0, (Position(0, i64), feature), type)
        holds = Apply("le", (value, Apply("bitcast", (word_of(1),), type)), i1)
        if self.tracks_missing.value.data:
            odd = Apply("and", (word_of(0), Literal(1, word)), word)
            tracks = Apply("ne", (odd, Literal(0, word)), i1)
            missing = Apply("and", (Apply("isnan", (value,), i1), tracks), i1)
            holds = Apply("or", (holds, missing), i1)
        return Apply("select", (holds, word_of(2), word_of(3)), word)

    def tile(self, box: Box) -> Tile | None:
        """Return the slices for some rows, None where the box cuts groups or weights."""
        groups, classes = self.result_type().get_shape()[1:]
        if tuple(box[1:]) != ((0, groups), (0, classes)):
            return None
        tables = (whole(shape_of(v)) for v in (self.nodes, self.roots, self.weights))
        return Tile(((box[0], (0, shape_of(self.features)[1])), *tables))
