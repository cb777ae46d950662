"""A stage that reduces, as a nest on the buffers of a kernel."""

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Region
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.structure import IteratorKind, Stage
from braid.lowering.common.linalg_stages import accumulated
from braid.lowering.gpu.nests.placement import Access

_KINDS = {
    IteratorKind.PARALLEL: IteratorTypeAttr.parallel(),
    IteratorKind.REDUCTION: IteratorTypeAttr.reduction(),
}


def stage_nest(
    stage: Stage, types: Sequence[Attribute], reads: Sequence[Access], result: Access
) -> linalg.GenericOp:
    """Return the nest of a stage whose operands and result are accessed so, without padding.

    `types` are those of the operands' elements in the dialect. The nest adds to its result, whose
    elements have the type that upstream computes in.
    """
    accesses = (*reads, result)
    block = Block(arg_types=[access.element_type for access in accesses])
    builder = Builder(InsertPoint.at_end(block))
    *elements, total = block.args
    builder.insert(linalg.YieldOp(accumulated(builder, stage, types, elements, total)))
    return linalg.GenericOp(
        [access.buffer for access in reads],
        [result.buffer],
        Region(block),
        [AffineMapAttr(_simplified(access.map)) for access in accesses],
        [_KINDS[kind] for kind in stage.kinds],
    )


def _simplified(map: AffineMap) -> AffineMap:
    """Return the map without quotients by 1, which groups of one channel have."""
    results = (expr.simplify(map.num_dims, 0) for expr in map.results)
    return AffineMap(map.num_dims, 0, tuple(results))
