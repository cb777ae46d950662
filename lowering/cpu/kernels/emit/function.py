"""The function around a kernel: its arguments as the kernel ABI wants them."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from braid.analysis.kernel_family import InPlace, Kernel, KernelRequest
from braid.dialects.braid.attributes import layout_of
from braid.lowering.cpu.argument_attributes import argument_attributes
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index
from braid.lowering.cpu.kernels.emit.machine import VectorUnit

Body = Callable[[Emitter, Sequence[Buffer], Index], None]
"""Emits one grid iteration: the emitter, the buffers (operands, then results), its number."""


def stored_type(tensor: Attribute) -> MemRefType[Any]:
    """The memref of the physical shape of a tensor type."""
    type = cast(TensorType[Any], tensor)
    shape = layout_of(type).storage_shape(type.get_shape())
    return MemRefType(type.element_type, shape)


def grid_kernel(
    request: KernelRequest,
    unit: VectorUnit,
    grid: int,
    body: Body,
    in_place: tuple[InPlace, ...] = (),
) -> Kernel:
    """A kernel that runs `body` for each of its iterations [begin, end)."""
    group = request.group
    values: list[SSAValue] = [*group.inputs, *group.outputs]
    memrefs = [stored_type(value.type) for value in values]
    entry = Block(arg_types=[*memrefs, IndexType(), IndexType()])
    emitter = Emitter(entry, unit)
    buffers = [Buffer.of(emitter, argument) for argument in entry.args[:-2]]
    begin, end = entry.args[-2:]
    emitter.loop(begin, end, 1, lambda index: body(emitter, buffers, index))
    emitter.effect(func.ReturnOp())
    function = func.FuncOp(
        request.symbol,
        ([argument.type for argument in entry.args], []),
        Region(entry),
        arg_attrs=argument_attributes(len(group.inputs), len(group.outputs), in_place),
    )
    return Kernel(request.symbol, ModuleOp([function]), grid, in_place=in_place)
