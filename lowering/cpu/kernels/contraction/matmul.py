"""Answer the questions of matmul families about a group: its size, conversions and layouts."""

import math

from xdsl.dialects.builtin import bf16, f16

from braid.analysis.nests.matmul import MatrixProduct
from braid.analysis.sizes.open_forms import open_dims
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike, row_major_choice
from braid.targets.machines.machine import Machine

_MOST_ROWS_BETWEEN_BATCHES = 8
"""The most rows of a product whose right operand has other batches between rows of a matrix."""


def widens_fast(product: MatrixProduct, machine: Machine) -> bool:
    """Return whether the machine has instructions for the conversions while loading, if there are
    any.

    bf16 is the upper half of an f32; on x86 f16 takes F16C, and bytes take SSE 4.1.
    """
    stored = element_type_of(product.right)
    if not product.widened or stored == bf16:
        return True
    feature = "f16c" if stored == f16 else "sse4.1"
    return not machine.architecture.startswith("x86") or feature in machine.enabled_features


def matmul_size(product: MatrixProduct, packed: bool, step: int = 1) -> ContractionSize:
    """Return how large the product is; batches that share B count as rows.

    The depth counts steps of this many numbers, which are as many bytes as a sum has.
    """
    *batch, m, n = product.points.shape
    count = math.prod(batch)
    depth = -(-product.depth // step)
    batches, rows = (1, count * m) if product.has_one_right else (count, m)
    constants = product.points.constants
    row_bytes = bytes_of(element_type_of(product.op.output)) * depth
    fixed = (batches, rows, n, depth, row_bytes, packed, constants)
    *batch_open, rows_open, _ = open_dims(product.op.output)
    rows_open = rows_open or (product.has_one_right and any(batch_open))
    stored = bytes_of(element_type_of(product.right)) if product.widened else 0
    return ContractionSize(*fixed, widened=stored, rows_open=rows_open)


def stored_right(group: FusedOp, product: MatrixProduct, right: Layout) -> LayoutChoice:
    """Return everything row-major but the right operand."""
    plain = row_major_choice(group)
    operands = list(plain.operands)
    operands[product.right.index] = right
    return LayoutChoice(tuple(operands), plain.results)


def by_columns(group: FusedOp, product: MatrixProduct) -> LayoutChoice:
    """Return everything row-major but the right operand, whose last two dims are exchanged."""
    letters = Layout.row_major(len(shape_of(product.right))).tag
    return stored_right(group, product, Layout.parse(f"{letters[:-2]}{letters[-1]}{letters[-2]}"))


def with_batches_inside(
    group: FusedOp, product: MatrixProduct, choice: LayoutChoice
) -> list[LayoutChoice]:
    """Return `choice` with the outermost dim of a matrix of the right operand before its batches.

    So lie caches of keys and values that grow token by token: few rows read them once, so that
    copying each batch together would not pay.
    """
    *batches, outer, inner = choice.operands[product.right.index].tag
    is_read_once = matmul_size(product, packed=False).rows <= _MOST_ROWS_BETWEEN_BATCHES
    if not batches or not is_read_once or product.slabs is not None:
        return []
    return [stored_right(group, product, Layout.parse("".join((outer, *batches, inner))))]


def supports_strides(group: FusedOp, choice: LayoutChoice) -> bool:
    """Return whether results have the same storage, and elements along innermost stored dims are
    contiguous."""
    values = (*group.inputs, *group.outputs)
    layouts = (*choice.operands, *choice.results)
    return results_alike(choice) and all(
        layout.strides is None
        or layout.strides[-1] == 1
        or layout.storage_shape(shape_of(value))[-1] == 1
        for value, layout in zip(values, layouts, strict=True)
    )
