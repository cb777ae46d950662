"""Pass `materialize-layouts`."""

from collections.abc import Callable, Container
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import affine, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.lowering.common.element_types import has_encoding, tensor_type_of
from braid.lowering.common.iteration_rewriting import rewrite_iteration
from braid.lowering.common.physical_iteration import (
    is_paddable,
    is_sliceable,
    storage_padding,
    storage_slice,
)
from braid.support.errors import BraidError


@dataclass(frozen=True)
class MaterializeLayoutsPass(ModulePass):
    """Replaces every tensor that has a layout by a tensor of the shape in which it is stored.

    Goes in after `convert-braid-to-linalg`. A `linalg.generic` then iterates over storage in
    the order of its result: blocked dims are split into two loops, access maps lead to the
    storage of the operands, and tails of padded blocks are written as zero. Upstream passes
    drop layouts silently, so afterwards no tensor may have one.

    Raises BraidError for an op, other than those that `convert-braid-to-linalg` leaves, on a
    tensor with a layout.
    """

    name = "materialize-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function in place."""
        materialize_layouts(op)


def materialize_layouts(module: ModuleOp, kept: Container[Operation] = ()) -> None:
    """Run the pass on a function; row-major nests in `kept` keep the order of their loops.

    A nest of a model may have results that depend on that order.
    """
    for function in [op for op in module.walk() if isinstance(op, FuncOp)]:
        for inner in list(function.walk()):
            if inner is not function and inner not in kept and _needs_rewriting(inner):
                _materialize(inner)
        for argument in function.args:
            _store(argument)
        for inner in function.walk():
            for result in inner.results:
                _store(result)
        function.update_function_type()
    check_no_encodings(module)


def check_no_encodings(module: ModuleOp) -> None:
    """Raise BraidError naming the first value whose tensor type has an encoding left."""
    for op in module.walk():
        arguments = (a for region in op.regions for block in region.blocks for a in block.args)
        for value in (*op.results, *arguments):
            if has_encoding(value):
                raise BraidError(
                    f"'{op.name}' still has a tensor with a layout: {value.type}",
                    location=source_location(op),
                    hint="materialize-layouts must run before any upstream pass",
                )


def _has_layout(op: Operation) -> bool:
    return any(has_encoding(value) for value in (*op.operands, *op.results))


def _needs_rewriting(op: Operation) -> bool:
    """Return whether an op must be rewritten; a generic op without layouts still gets its loops
    ordered.
    """
    return isinstance(op, linalg.GenericOp) or _has_layout(op)


def _stored_type(tensor_type: AnyTensor) -> AnyTensor:
    shape = layout_of(tensor_type).storage_shape(tensor_type.get_shape())
    return TensorType(tensor_type.element_type, shape)


def _store(value: SSAValue) -> None:
    if has_encoding(value):
        Rewriter.replace_value_with_new_type(value, _stored_type(tensor_type_of(value)))


def _materialize(op: Operation) -> None:
    """Bring the attributes of `op` to storage; the types of its values change afterwards."""
    rule = _RULES.get(op.name)
    if rule is None:
        raise BraidError(
            f"'{op.name}' cannot work on tensors with layouts", location=source_location(op)
        )
    rule(op)


def _keep(op: Operation) -> None:
    """Leave `op` unchanged: the types of its values hold all layouts."""


def _generic(op: Operation) -> None:
    assert isinstance(op, linalg.GenericOp)
    rewrite_iteration(op)


def _pad(op: Operation) -> None:
    assert isinstance(op, tensor.PadOp)
    layout = layout_of(op.source.type)
    low, high = op.static_low.get_values(), op.static_high.get_values()
    assert layout == layout_of(op.result.type) and is_paddable(layout, low, high)
    op.static_low = DenseArrayBase.from_list(i64, storage_padding(layout, low))
    op.static_high = DenseArrayBase.from_list(i64, storage_padding(layout, high))
    block = op.region.block
    while len(block.args) < len(layout.dims):
        block.insert_arg(IndexType(), len(block.args))


def _slice(op: Operation) -> None:
    assert isinstance(op, tensor.InsertSliceOp | tensor.ExtractSliceOp)
    whole = op.dest if isinstance(op, tensor.InsertSliceOp) else op.source
    part = op.source if isinstance(op, tensor.InsertSliceOp) else op.result
    layout = layout_of(whole.type)
    offsets, sizes = op.static_offsets.get_values(), op.static_sizes.get_values()
    shape = tensor_type_of(whole).get_shape()
    assert layout == layout_of(part.type) and is_sliceable(layout, shape, offsets, sizes)
    starts, extents = storage_slice(layout, offsets, sizes)
    op.static_offsets = DenseArrayBase.from_list(i64, starts)
    op.static_sizes = DenseArrayBase.from_list(i64, extents)
    op.static_strides = DenseArrayBase.from_list(i64, [1] * len(starts))


def _extract(op: Operation) -> None:
    assert isinstance(op, tensor.ExtractOp)
    builder = Builder(InsertPoint.before(op))
    storage = layout_of(op.tensor.type).storage_map
    indices: list[SSAValue] = []
    for expr in storage.results:
        map = AffineMapAttr(AffineMap(storage.num_dims, 0, (expr,)))
        indices.append(builder.insert(affine.ApplyOp(op.indices, map)).result)
    op.operands = (op.tensor, *indices)


_RULES: dict[str, Callable[[Operation], None]] = {
    "linalg.generic": _generic,
    "linalg.fill": _keep,
    "tensor.empty": _keep,
    "tensor.pad": _pad,
    "tensor.insert_slice": _slice,
    "tensor.extract_slice": _slice,
    "tensor.extract": _extract,
    "func.return": _keep,
}
