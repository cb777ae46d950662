"""Which dim of which operand a part of an iteration dim needs, derived from access maps."""

from xdsl.ir.affine import AffineDimExpr

from braid.dialects.braid.base import StructuredOp
from braid.dialects.braid.scalar import Load, Position, walk
from braid.dialects.braid.structure import Access, OperandSource, Stage


def operand_dims(op: StructuredOp, dim: int) -> dict[int, int] | None:
    """The operand dims that are cut where iteration dim `dim` of the last stage is: operand -> dim.

    Operands that are not in the result are needed whole. None where the dim cannot be cut: a
    part of it would need other elements than its own, of an operand or an earlier stage.
    """
    structure = op.structure()
    if len(structure.results) != 1:
        return None
    cuts = _Cuts(structure.stages)
    return cuts.dims if cuts.cut(structure.results[0], dim) and cuts.is_consistent() else None


class _Cuts:
    """Operands and stages that are cut along a dim, and those that are needed whole."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages
        self.dims: dict[int, int] = {}
        self.stage_dims: dict[int, int] = {}
        self.whole: set[int] = set()
        self.whole_stages: set[int] = set()

    def is_consistent(self) -> bool:
        """Whether nothing is needed both whole and cut."""
        return not (self.whole & set(self.dims) or self.whole_stages & set(self.stage_dims))

    def cut(self, number: int, dim: int) -> bool:
        """Cuts iteration dim `dim` of a stage; returns whether that is possible."""
        if self.stage_dims.setdefault(number, dim) != dim:
            return False
        stage = self.stages[number]
        if any(_uses_index(node, dim) for node in walk(stage.body)):
            return False
        return all(self._cut_read(access, dim) for access in stage.reads)

    def _cut_read(self, access: Access, dim: int) -> bool:
        used = [k for k, e in enumerate(access.map.results) if dim in e.used_dims()]
        if not used:
            self._keep(access)
            return True
        if len(used) > 1 or access.map.results[used[0]] != AffineDimExpr(dim):
            return False
        position, padding = used[0], access.padding
        if padding is not None and (padding.low[position] or padding.high[position]):
            return False
        if isinstance(access.source, OperandSource):
            return self.dims.setdefault(access.source.index, position) == position
        made_at = self.stages[access.source.index].result.results[position]
        if not isinstance(made_at, AffineDimExpr):
            return False
        return self.cut(access.source.index, made_at.position)

    def _keep(self, access: Access) -> None:
        if isinstance(access.source, OperandSource):
            self.whole.add(access.source.index)
        elif access.source.index not in self.whole_stages:
            self.whole_stages.add(access.source.index)
            for read in self.stages[access.source.index].reads:
                self._keep(read)


def _uses_index(node: object, dim: int) -> bool:
    return isinstance(node, Load) or (isinstance(node, Position) and node.dim == dim)
