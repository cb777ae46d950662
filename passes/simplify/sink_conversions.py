"""`sink-conversions`: weights of 8 and 16 bits stay so until they are computed with.

A conversion of a known tensor to f32, and a scale after it, would be computed when the model is
compiled: the artifact would hold the tensor in f32, which is up to four times as large.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.interpreter.parameter_values import ParameterValues, parameter_values
from braid.analysis.structure.conversions import NARROW, narrow_source
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.elementwise import ELEMENTWISE, elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.names import derive_names, union_names
from braid.dialects.braid.quantization import DequantizeOp
from braid.dialects.braid.settings import settings_of

_MUL = ELEMENTWISE["mul"]


@dataclass(frozen=True)
class SinkConversionsPass(ModulePass):
    """Moves conversions to f32 of known tensors, and their scales, after what reads these.

    In: any module. Out: rows of a table of 8 or 16 bits are gathered before they are converted and
    scaled. A product by known weights of this many bits is scaled instead of the weights, where the
    scale is one number per column or one for all; `fuse-conversions` then does not change the
    weights. With strict numerics products are not scaled.

    ```mlir
    %1 = braid.cast %w : (tensor<64x32xi8>) -> tensor<64x32xf32>
    %2 = braid.mul %1, %s : (tensor<64x32xf32>, tensor<1x32xf32>) -> tensor<64x32xf32>
    %y = braid.matmul %x, %2 …
    // becomes
    %1 = braid.cast %w : (tensor<64x32xi8>) -> tensor<64x32xf32>
    %2 = braid.matmul %x, %1 …
    %y = braid.mul %2, %s …
    ```
    """

    name = "sink-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Move them in every function that runs with the model."""
        weights = _Weights(ParameterExpressions(), parameter_values(ctx, op))
        for func in runtime_functions(op):
            gathers = products = 0
            for reader in list(func.walk()):
                if isinstance(reader, GatherOp):
                    gathers += _gather_first(reader, weights)
                elif isinstance(reader, MatmulOp) and not settings_of(op).is_strict:
                    products += _scale_last(reader, weights)
            if gathers or products:
                message = f"{gathers} gathers and {products} products read unconverted weights"
                emit_remark(func, self.name, message, gathers=gathers, products=products)


@dataclass(frozen=True)
class _Stored:
    """A known tensor as it is stored, and the known scale by which its f32 is multiplied."""

    narrow: SSAValue
    scale: SSAValue | None = None

    def transposed(self, op: TransposeOp) -> "_Stored":
        """Return the transposed tensor as it is stored; the transpose is computed at
        compile time.
        """

        def turned(value: SSAValue) -> SSAValue:
            new = TransposeOp.get(value, op.permutation.get_values())
            Rewriter.insert_op(new, InsertPoint.before(op))
            return new.output

        return _Stored(turned(self.narrow), None if self.scale is None else turned(self.scale))


@dataclass(frozen=True)
class _Weights:
    """The tensors that are known when the model is compiled, with their values."""

    expressions: ParameterExpressions
    values: ParameterValues

    def is_known(self, value: SSAValue) -> bool:
        return self.expressions.is_known(value)

    def stored(self, value: SSAValue) -> _Stored | None:
        """Return how `value` is made of a known tensor of fewer bits, if it is."""
        op = value.owner
        if not isinstance(op, Operation) or not self.is_known(value):
            return None
        if isinstance(op, TransposeOp):
            found = self.stored(op.input)
            return None if found is None else found.transposed(op)
        if isinstance(op, DequantizeOp):
            return self._dequantized(op)
        if isinstance(op, _MUL):
            return _scaled(op)
        narrow = narrow_source(op)
        return None if narrow is None else _Stored(narrow)

    def _dequantized(self, op: DequantizeOp) -> _Stored | None:
        q, scale, zero = op.operands
        if element_type_of(q) not in NARROW or shape_of(q) != shape_of(op.results[0]):
            return None
        point = self.values.of(zero)
        return None if point is None or point.any() else _Stored(q, scale)


def _scaled(op: Operation) -> _Stored | None:
    """Return how a product of a conversion and a scale, all of them known, is stored."""
    for converted, scale in (op.operands, op.operands[::-1]):
        inner = converted.owner
        narrow = narrow_source(inner) if isinstance(inner, Operation) else None
        if narrow is not None and shape_of(converted) == shape_of(op.results[0]):
            return _Stored(narrow, scale)
    return None


def _gather_first(gather: GatherOp, weights: _Weights) -> bool:
    """Gather stored numbers, and convert and scale the gathered ones."""
    stored = weights.stored(gather.data)
    if stored is None or weights.is_known(gather.indices):
        return False
    dim, rank = gather.dim.value.data, len(shape_of(gather.indices))
    rows = GatherOp.get(stored.narrow, gather.indices, dim)
    made: dict[str, TensorOp] = {"rows": rows, "converted": _converted(rows)}
    if stored.scale is not None:
        before, own, after = _parted(shape_of(stored.scale), dim)
        if own == 1:
            scale = ReshapeOp.get(stored.scale, (*before, *(1,) * rank, *after))
        else:
            scale = GatherOp.get(stored.scale, gather.indices, dim)
        made |= {"scale": scale, "scaled": elementwise("mul", made["converted"], scale)}
    _replace(gather, made)
    return True


def _parted(shape: tuple[int, ...], dim: int) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    return shape[:dim], shape[dim], shape[dim + 1 :]


def _scale_last(product: MatmulOp, weights: _Weights) -> bool:
    """Multiply by stored numbers, and scale the product."""
    if product.accumulator is not None or weights.is_known(product.lhs):
        return False
    stored = weights.stored(product.rhs)
    if stored is None or stored.scale is None:
        return False
    *others, columns = shape_of(stored.scale)
    if any(extent != 1 for extent in others):
        return False
    converted = _converted(stored.narrow)
    unscaled = MatmulOp.on(product.lhs, converted)
    ones = (1,) * (len(shape_of(product.output)) - 1)
    scale = ReshapeOp.get(stored.scale, (*ones, columns))
    scaled = elementwise("mul", unscaled, scale)
    made = {"converted": converted, "unscaled": unscaled, "scale": scale, "scaled": scaled}
    _replace(product, made)
    return True


def _converted(narrow: SSAValue | TensorOp) -> TensorOp:
    return elementwise("cast", narrow, element_type=f32)


def _replace(op: TensorOp, made: Mapping[str, TensorOp]) -> None:
    """Replace `op` by new ops, the last of which gives its result."""
    last = [*made.values()][-1]
    for what, new in made.items():
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
        if new is not last:
            derive_names(new, op, what)
    union_names(last, op)
    op.results[0].replace_all_uses_with(last.results[0])
    Rewriter.erase_op(op)
