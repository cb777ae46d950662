"""Which operand of a bufferized kernel its result may overwrite."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.loop_nest import Loops, Nest, loops_of
from braid.targets.kernels.kernel_family import InPlace


def in_place_arguments(function: FuncOp, operands: int) -> tuple[InPlace, ...]:
    """Pairs (operand, result) of a kernel before its nests become loops.

    The result is written by one parallel nest, which reads the operand at the element that it
    writes; nothing else reads the operand, and nothing else writes the result.
    """
    arguments = function.body.block.args[:-2]
    pairs: list[InPlace] = []
    for number, result in enumerate(arguments[operands:]):
        nest = _only_user(result)
        if not isinstance(nest, linalg.GenericOp) or result in nest.inputs:
            continue
        loops = loops_of(nest)
        if _writes_each_element_once(loops) and not nest.body.block.args[-1].uses:
            pairs += [
                (operand.index, number)
                for operand in arguments[:operands]
                if _read_in_place(operand, nest, loops) and _stored(operand) == _stored(result)
            ]
    return tuple(pairs)


def _only_user(value: SSAValue) -> object:
    users = {use.operation for use in value.uses}
    return users.pop() if len(users) == 1 else None


def _writes_each_element_once(loops: Loops) -> bool:
    return all(loops.is_parallel) and loops.result == AffineMap.identity(len(loops.extents))


def _read_in_place(operand: BlockArgument, nest: Nest, loops: Loops) -> bool:
    if _only_user(operand) is not nest:
        return False
    reads: Sequence[AffineMap] = [
        map for value, map in zip(nest.operands, loops.maps, strict=True) if value is operand
    ]
    shape = cast(MemRefType[Any], operand.type).get_shape()
    return tuple(shape) == loops.extents and all(map == loops.result for map in reads)


def _stored(value: SSAValue) -> tuple[int, Attribute]:
    """The width of an element, and the strides."""
    type = cast(MemRefType[Any], value.type)
    return bytes_of(type.element_type), type.layout
