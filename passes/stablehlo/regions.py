"""Regions of StableHLO that compute one element: applied to whole tensors, or analysed."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of, tensor_type
from braid.dialects.stablehlo import ReturnOp, StablehloOp
from braid.passes.stablehlo.node import StablehloNode
from braid.support.sizes.expression import Extent

_MOST_OPS = 256
"""An order by ten keys takes half as many; each is an op on whole tensors."""


def region_of(t: StablehloNode, arguments: int) -> Block:
    """Return the block of the op's only region; raise what `sole_block` raises."""
    if len(t.op.regions) != 1:
        t.fail(f"expected one region, got {len(t.op.regions)}")
    return sole_block(t, t.op.regions[0], arguments)


def sole_block(t: StablehloNode, region: Region, arguments: int) -> Block:
    """Return the only block of a region of `t`; fail unless it has this many arguments.

    Raises UnsupportedError for one of very many ops.
    """
    blocks = list(region.blocks)
    if len(blocks) != 1 or not isinstance(blocks[0].last_op, ReturnOp):
        t.fail("expected a region of one block that ends in a 'stablehlo.return'")
    if len(blocks[0].args) != arguments:
        t.fail(f"its region takes {len(blocks[0].args)} values, expected {arguments}")
    if len(blocks[0].ops) > _MOST_OPS:
        t.unsupported(
            f"its region has {len(blocks[0].ops)} ops, expected at most {_MOST_OPS}",
            hint="compute the elements before the op",
        )
    return blocks[0]


def returned_by(block: Block) -> list[SSAValue]:
    """Return the values that a region of `region_of` returns."""
    assert block.last_op is not None, "region_of has looked"
    return list(block.last_op.operands)


class Elements:
    """The scalars of a region for many elements at once: each is a tensor of one element a place.

    `known` are those of arguments, all of `shape`. Only requested values are computed.
    """

    def __init__(
        self, t: StablehloNode, known: Mapping[SSAValue, SSAValue], shape: Sequence[Extent]
    ) -> None:
        self._t = t
        self._known = dict(known)
        self._shape = tuple(shape)

    def of(self, scalar: SSAValue) -> SSAValue:
        """Return the tensor of `scalar`, with the shape of all, or with extents of 1 for a splat.

        Raises UnsupportedError for an op in the region that is not elementwise.
        """
        if scalar not in self._known:
            self._known[scalar] = self._computed(scalar)
        return self._known[scalar]

    def repeated(self, scalar: SSAValue) -> SSAValue:
        """Return the tensor of `scalar`, of the shape of all."""
        return self._t.broadcast(self.of(scalar), self._shape)

    def _computed(self, scalar: SSAValue) -> SSAValue:
        t, rank = self._t, len(self._shape)
        kind: Attribute = scalar.type
        if not isinstance(kind, TensorType) or shape_of(scalar):
            t.unsupported(
                f"its region has a value of type {kind}, expected single elements",
                hint="compute tensors before the op, and elements in its region",
            )
        op = scalar.owner
        if isinstance(op, Block) or not any(op.parent is b for r in t.op.regions for b in r.blocks):
            return t.reshape(scalar, [1] * rank)  # it is computed before the op
        if not isinstance(op, StablehloOp) or op.regions or len(op.results) != 1:
            t.unsupported(
                f"its region has '{op.name}', expected elementwise ops",
                hint="compute the elements before the op",
            )
        operands = [self.of(operand) for operand in op.operands]
        is_one = all(extents_of(operand) != self._shape for operand in operands)
        shape = [1] * rank if is_one and operands else self._shape if operands else []
        applied = type(op).create(
            operands=operands,
            result_types=[tensor_type(element_type_of(scalar), shape)],
            properties=op.properties,
            attributes=op.attributes,
        )
        return t.reshape(t.convert(applied)[0], [1] * rank if not operands else shape)
