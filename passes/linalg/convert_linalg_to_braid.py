"""The pass `convert-linalg-to-braid`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import (
    TensorNest,
    op_name,
    tensor_nests,
    without_sign,
    writes_every_element,
)
from braid.dialects.braid.base import (
    element_type_of,
    extents_of,
    fits,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.dtypes import i64, is_element_type, is_stored_only, to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.names import inherit_names
from braid.dialects.braid.size_evaluation import as_array
from braid.dialects.braid.sizes import has_open_dims
from braid.passes.conversion.converters import INVALID_OP_ERRORS
from braid.passes.conversion.refused import Refused
from braid.passes.linalg.generated import GENERATE, generate_by_nest
from braid.passes.linalg.index_values import index_value
from braid.passes.linalg.nests import Nest, elementwise_results, product, reduced
from braid.passes.linalg.node import NotConvertedError, UpstreamNode
from braid.passes.linalg.scalars import SCALAR_OPS, convert_scalar
from braid.passes.linalg.tensors import CONVERTERS, splat
from braid.passes.linalg.windows import convert_windows
from braid.passes.sizes.infer_sizes import infer_sizes
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent

_COPIES = ("linalg.broadcast", "linalg.copy", "linalg.fill", "linalg.transpose")
"""Ops that write every element of their last operand and read none."""

_DIALECTS = ("arith", "linalg", "math", "tensor")


@dataclass(frozen=True)
class ConvertLinalgToBraidPass(ModulePass):
    """Rewrites ops of `linalg`, `tensor`, `arith` and `math` on tensors as ops of braid.

    Matrix products, convolutions, poolings, reductions and elementwise ops are recognized by the
    maps and bodies of loop nests, whatever their names. They get the same kernels, on the same
    devices, as models of other formats. An op that has no counterpart, or dynamic dims, is left
    unchanged: `group-upstream-ops` compiles it by upstream's lowering.

    ```mlir
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x8xf32>)
                       outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
    // becomes
    %y = braid.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    ```
    """

    name = "convert-linalg-to-braid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert the tensor ops in `op` in place.

        Raises:
            UnsupportedNodesError: ops can neither be converted nor compiled by upstream's lowering.

        """
        for inner in [inner for inner in op.walk() if op_name(inner) == GENERATE]:
            generate_by_nest(inner)
        ops = [inner for inner in op.walk() if _is_of_tensors(inner)]
        nests = tensor_nests([op for op in ops if _needs_nest(op)])
        refused = Refused()
        for inner in ops:
            with refused.noting(inner):
                _convert(inner, nests.get(inner))
        refused.require_none()
        for inner in ops:
            if inner.parent is not None and isinstance(inner, tensor.EmptyOp):
                _fill_where_read(inner)
        for inner in reversed(ops):
            if inner.parent is not None and _is_unused(inner):
                Rewriter.erase_op(inner)
        if has_open_dims(op):
            _finish_indices(op)
            infer_sizes(op)


def _finish_indices(module: ModuleOp) -> None:
    """Erase computations of sizes that nothing reads any more, and give others their sizes."""
    for op in reversed([inner for inner in module.walk() if _is_index(inner)]):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
        elif isinstance(op, tensor.DimOp):
            _replace_dim(op)


def _is_of_tensors(op: Operation) -> bool:
    """Return whether `op` is of an upstream dialect and all of its results are tensors."""
    is_known = op_name(op).partition(".")[0] in _DIALECTS
    return is_known and bool(op.results) and all(isinstance(v.type, TensorType) for v in op.results)


def _needs_nest(op: Operation) -> bool:
    name = op_name(op)
    return name.startswith("linalg.") and name not in CONVERTERS and name != "linalg.fill"


def _fill_where_read(op: tensor.EmptyOp) -> None:
    """Replace `op` by zeros where its elements are read, which would be whatever memory held."""
    readers = [use for use in op.tensor.uses if not _is_overwritten(use)]
    node = UpstreamNode(op)
    try:
        zeros = splat(node, 0, node.shape(op.tensor)) if readers else op.tensor
    except NotConvertedError:
        node.undo()
        return
    for use in readers:
        use.operation.operands[use.index] = zeros


def _is_overwritten(use: Use) -> bool:
    """Return whether the user writes every element of the operand before it reads one."""
    op, name = use.operation, op_name(use.operation)
    if name == "linalg.generic":
        number = use.index - (len(op.operands) - len(op.results))
        is_read = bool(op.regions[0].block.args[use.index].uses)
        return not is_read and (number < 0 or writes_every_element(op, number))
    return name in _COPIES and use.index == len(use.operation.operands) - 1


def _is_unused(op: Operation) -> bool:
    is_free = isinstance(op, tensor.EmptyOp) or op_name(op) == "arith.constant"
    return is_free and not any(result.uses for result in op.results)


def _is_index(op: Operation) -> bool:
    """Return whether `op` computes a scalar from constants and the sizes of tensors."""
    is_scalar = isinstance(op, tensor.DimOp) or op_name(op).startswith("arith.")
    return is_scalar and not any(isinstance(v.type, TensorType) for v in op.results)


def _replace_dim(op: tensor.DimOp) -> None:
    """Replace the size of a tensor that other ops still read by a value of it."""
    node = UpstreamNode(op)
    size = index_value(op.result, node.assumptions)
    if size is not None:
        values = node.sizes(as_array([size], []), i64)
        (number,) = node.insert(tensor.ExtractOp(values, [], i64))
        Rewriter.replace_op(op, arith.IndexCastOp(number, op.result.type))


def _convert(op: Operation, nest: TensorNest | None) -> None:
    node = UpstreamNode(op)
    try:
        if isinstance(op, tensor.EmptyOp):
            _say_sizes(node, op)
        values = _values(node, nest)
        if not all(map(_is_declared, values, op.results)):
            node.leave()
        if any(DYNAMIC in shape_of(result) for result in op.results):
            values = [
                node.with_extents(value, _merged(extents_of(result), extents_of(value)))
                for value, result in zip(values, op.results, strict=True)
            ]
    except (NotConvertedError, UnsupportedError, VerifyException, *INVALID_OP_ERRORS):
        node.undo()
        _require_element_types(op)
        return
    for result, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = result.name_hint
    inherit_names(op, values, node.inserted)
    Rewriter.replace_op(op, [], values)


def _say_sizes(node: UpstreamNode, op: tensor.EmptyOp) -> None:
    """Give the type of an empty tensor the sizes of its dynamic dims, where these are known."""
    sizes = iter(op.dynamic_sizes)
    shape = shape_of(op.tensor)
    extents = [node.index(next(sizes)) if extent == DYNAMIC else extent for extent in shape]
    if DYNAMIC in shape:
        type = tensor_type(element_type_of(op.tensor), extents)
        Rewriter.replace_value_with_new_type(op.tensor, type)


def _is_declared(value: SSAValue, result: SSAValue) -> bool:
    """Return whether a value has the type of a result, at some sizes of open dims."""
    return element_type_of(value) == element_type_of(result) and fits(
        extents_of(value), extents_of(result)
    )


def _merged(declared: Sequence[Extent], own: Sequence[Extent]) -> list[Extent]:
    """Return the extents that a type declares, with the sizes of a value in open dims."""
    return [
        size if extent == DYNAMIC else extent for extent, size in zip(declared, own, strict=True)
    ]


def _require_element_types(op: Operation) -> None:
    """Raise UnsupportedError if upstream cannot lower `op` because of its element types."""
    makes_nothing = isinstance(op, tensor.EmptyOp)
    for value in () if makes_nothing else (*op.operands, *op.results):
        if not isinstance(value.type, TensorType):
            continue
        element_type = element_type_of(value)
        is_known = is_element_type(element_type) and not is_stored_only(element_type)
        # Upstream's lowering supports signless integers only.
        if not is_known or element_type != without_sign(element_type):
            raise UnsupportedError(
                f"'{op_name(op)}' on element type {element_type}, expected f16, bf16, f32, f64, "
                "i1, i8, i16, i32 or i64",
                location=source_location(op),
                hint="convert the elements first, or bitcast them to signless integers",
            )


def _values(node: UpstreamNode, nest: TensorNest | None) -> Sequence[SSAValue]:
    name = op_name(node.op)
    shapes = [shape_of(result) for result in node.op.results]
    if all(0 in shape and DYNAMIC not in shape for shape in shapes):
        return [_without_elements(node, result) for result in node.op.results]
    if name in CONVERTERS:
        return [CONVERTERS[name](node)]
    if name == "linalg.fill":
        number = node.number_in(node.value(0))
        if number is None:
            node.leave()
        return [splat(node, number, node.shape(node.value(1)))]
    if nest is not None:
        return _convert_nest(node, nest)
    if name in SCALAR_OPS:
        for value in node.op.operands:
            node.shape(value)
        return [convert_scalar(node, node.op, list(node.op.operands))]
    node.leave()


def _without_elements(node: UpstreamNode, result: SSAValue) -> SSAValue:
    return node.constant(np.zeros(shape_of(result), to_numpy(element_type_of(result))))


def _convert_nest(node: UpstreamNode, nest: TensorNest) -> Sequence[SSAValue]:
    """Convert a nest and return its results; raise NotConvertedError if braid has no such op."""
    if not nest.has_iterations:
        return nest.outputs
    own = Nest.of(node, nest)
    if own.is_elementwise and not own.has_windows:
        return elementwise_results(own)
    if len(nest.outputs) > 1:
        return [_one_result(node, nest, number) for number in range(len(nest.outputs))]
    if own.has_windows:
        return [convert_windows(own)]
    combine = own.combination()
    factors = own.factors(combine)
    if factors is not None and (found := product(own, *factors)) is not None:
        return [own.with_start(found, "add")]
    return [reduced(own, combine)]


def _one_result(node: UpstreamNode, nest: TensorNest, number: int) -> SSAValue:
    """Convert a nest of several results with different loops for one result alone."""
    alone = nest.for_result(number)
    if alone is None:
        node.leave()
    try:
        return _convert_nest(node, alone)[0]
    finally:
        alone.op.drop_all_references()
