"""The function around a kernel: its arguments as the kernel ABI wants them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    f32,
    f64,
    i1,
    i8,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.argument_attributes import argument_attributes
from braid.lowering.common.element_types import signless
from braid.lowering.common.function_attributes import mark_unrolled
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent, Size
from braid.targets.kernels.kernel_family import InPlace, Kernel

_SCRATCH: Mapping[int, Attribute] = {4: f32, 8: f64}

OPEN_ELEMENTS = 1 << 48
"""The elements of an address space: the type of a buffer of unknown length needs a number."""

Body = Callable[[Emitter, Sequence[Buffer], Index], None]
"""Emits one grid iteration: the emitter, the buffers (operands, then results), its number."""


@dataclass(frozen=True)
class Prepared:
    """The preparation that each run of `iterations` neighbouring iterations of a grid shares.

    `write` emits it for the run of a number. A call runs it before the first iteration of each run
    that it has iterations of, so that one thread prepares everything once, however finely the grid
    is cut for several.
    """

    iterations: int
    write: Body


Around = tuple[
    Callable[[Emitter, Sequence[Buffer]], None], Callable[[Emitter, Sequence[Buffer]], None]
]
"""Emit what comes before all iterations of a call, and after them."""


def stored_type(tensor: Attribute, layout: Layout | None = None) -> MemRefType[Any]:
    """Return the memref of the physical shape of a tensor type in `layout`, by default its own.

    Unsigned integers become signless ones: their operations hold the signedness. Truth values are
    bytes. A tensor with open dims is a row of elements that has no end.
    """
    type = cast(TensorType[Any], tensor)
    layout = layout or layout_of(type)
    shape = layout.storage_shape(type.get_shape())
    if DYNAMIC in shape:
        shape = (OPEN_ELEMENTS,)
    strides = NoneAttr() if layout.strides is None else StridedLayoutAttr(layout.strides, 0)
    element_type = i8 if type.element_type == i1 else signless(type.element_type)
    return MemRefType(element_type, shape, strides)


def grid_kernel(
    group: FusedOp,
    symbol: str,
    unit: VectorUnit,
    grid: Extent,
    body: Body,
    in_place: tuple[InPlace, ...] = (),
    scratch_bytes: Extent = 0,
    around: Around | None = None,
    prepared: Prepared | None = None,
    *,
    aliases: tuple[InPlace, ...] = (),
    is_unrolled: bool = False,
) -> Kernel:
    """Return a kernel of `group` that runs `body` for each of its iterations [begin, end).

    The last of the body's buffers is scratch of floats as wide as the unit's elements, if there is
    any: a multiple of 64 bytes. A call runs the two parts of `around` before its first iteration
    and after its last one, and `prepared` before the iterations that share it. An operand and a
    result of `aliases` may begin at the same address, although no memory plan places them so. LLVM
    leaves the loops of a kernel that `is_unrolled` as they are.
    """
    module, sizes = _grid_module(
        group, symbol, unit, body, (*in_place, *aliases), scratch_bytes, around, prepared
    )
    if is_unrolled:
        mark_unrolled(cast(func.FuncOp, module.body.block.first_op))
    return Kernel(symbol, module, grid, scratch_bytes, in_place, sizes=sizes)


class OverlappingBody(Protocol):
    """A body that writes its result over an operand; the last buffer is scratch of floats."""

    @property
    def operand(self) -> int:
        """The operand that begins where the result does."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """A multiple of 64, not 0."""
        ...

    @property
    def grid(self) -> int:
        """Iterations in all."""
        ...

    @property
    def barriers(self) -> tuple[int, ...]:
        """See `Kernel`."""
        ...

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Emit one grid iteration."""
        ...


def overlapping_kernel(
    group: FusedOp, symbol: str, unit: VectorUnit, body: OverlappingBody
) -> Kernel:
    """Return a kernel whose operand `body.operand` may begin where its result does."""
    pairs = ((body.operand, 0),)
    module, _ = _grid_module(group, symbol, unit, body.iteration, pairs, body.scratch_bytes)
    return Kernel(
        symbol,
        module,
        body.grid,
        body.scratch_bytes,
        overlap=body.operand,
        barriers=body.barriers,
    )


def _grid_module(
    group: FusedOp,
    symbol: str,
    unit: VectorUnit,
    body: Body,
    aliases: Sequence[InPlace],
    scratch_bytes: Extent,
    around: Around | None = None,
    prepared: Prepared | None = None,
) -> tuple[ModuleOp, tuple[Size, ...]]:
    """Return the function of a kernel, and the sizes that it takes.

    The buffers of `aliases` may be the same memory.
    """
    values: list[SSAValue] = [*group.inputs, *group.outputs]
    choice = stored_choice(group)
    layouts = (*choice.operands, *choice.results)
    memrefs = [stored_type(v.type, layout) for v, layout in zip(values, layouts, strict=True)]
    if scratch_bytes != 0:
        bytes = unit.element_bytes
        is_known = isinstance(scratch_bytes, int)
        words = scratch_bytes // bytes if is_known else OPEN_ELEMENTS
        memrefs.append(MemRefType(_SCRATCH[bytes], [words]))
    entry = Block(arg_types=[*memrefs, IndexType(), IndexType()])
    emitter = Emitter(entry, unit)
    buffers = [Buffer.of(emitter, argument) for argument in entry.args[: len(memrefs)]]
    begin, end = emitter.iterations
    if around is not None:
        around[0](emitter, buffers)

    def iteration(index: Index) -> None:
        if prepared is not None:
            _prepare(emitter, buffers, index, begin, prepared)
        body(emitter, buffers, index)

    emitter.loop(begin, end, 1, iteration)
    if around is not None:
        around[1](emitter, buffers)
    emitter.effect(func.ReturnOp())
    results = len(memrefs) - len(group.inputs)
    function = func.FuncOp(
        symbol,
        ([argument.type for argument in entry.args], []),
        Region(entry),
        arg_attrs=argument_attributes(len(group.inputs), results, aliases, len(emitter.sizes)),
    )
    return ModuleOp([function]), emitter.sizes


def _prepare(
    e: Emitter, buffers: Sequence[Buffer], index: Index, begin: SSAValue, prepared: Prepared
) -> None:
    """Run the preparation before iteration `index` of a call that began with `begin`, if none has
    yet.
    """
    run, place = e.divmod(index, prepared.iterations)

    def write() -> None:
        prepared.write(e, buffers, run)

    if prepared.iterations == 1:
        write()
        return
    is_first = e.insert(arith.CmpiOp(e.index(place), e.index(0), "eq"))
    begins = e.insert(arith.CmpiOp(e.index(index), begin, "eq"))
    e.when(e.insert(arith.OrIOp(is_first, begins)), write)
