"""Provide what families of products have in common: matching groups, their code, schedules."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import (
    IntAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.pointwise_body import has_one_value
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import ElementKind, ProductMatch, element_kinds
from braid.lowering.gpu.contraction.schedules import (
    Size,
    peak_rate,
    schedules,
    seconds,
    share_of,
    shared_memory,
)
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.lowering.gpu.launch.entries import (
    buffer_bytes,
    gpu_function,
    gpu_module,
)
from braid.lowering.gpu.launch.gpu_kernel import BlockWork, GpuKernel
from braid.lowering.gpu.launch.launches import (
    THREADS,
    Launch,
    Launches,
    TensorMap,
    blocks_for,
    dynamic_shared,
)
from braid.lowering.gpu.nests.placement import Placement
from braid.targets.kernels.kernel_family import Candidate, InPlace, Kernel, S
from braid.targets.machines.gpus import TF32
from braid.targets.machines.machine import Machine

_SHARED_ALIGNMENT = 1024
"""The alignment in bytes that tiles of tensor maps need that are swizzled by 128 bytes."""


def match_product(
    group: FusedOp, kind: type[MatmulOp] | type[ConvOp], machine: Machine
) -> ProductMatch | None:
    """Return the only product of the group, not empty, if everything else computes with its result.

    An f32 product is computed in tf32 if the machine permits it.
    """
    members = [op for op in group.body.block.ops if op is not group.terminator]
    products = [op for op in members if isinstance(op, kind)]
    if len(products) != 1:
        return None
    op = products[0]
    kinds = element_kinds(op)
    if kinds is None or not all(isinstance(v, BlockArgument) for v in op.operands):
        return None
    values = (*op.operands, *group.inputs, *group.outputs)
    if any(DYNAMIC in shape_of(v) or 0 in shape_of(v) for v in values):
        return None
    shape = shape_of(op.output)
    known: set[SSAValue] = {op.output}
    place = members.index(op)
    before, after = members[:place], members[place + 1 :]
    for other in after:
        if not _follows(other, known, shape):
            return None
        known.update(other.results)
    results = tuple(group.terminator.arguments)
    if not all(map(has_one_value, before)) or any(result not in known for result in results):
        return None
    elements = ElementKind.S8 if ElementKind.U8 in kinds else kinds[0]
    if elements is ElementKind.F32 and machine.fact(TF32, 0):
        elements = ElementKind.TF32
    return ProductMatch(op, elements, (*before, *after), results)


def _follows(op: Operation, known: set[SSAValue], shape: tuple[int, ...]) -> bool:
    """Return whether an op is elementwise on the product, at the product's points."""
    if isinstance(op, ConstantOp):
        return has_one_value(op)
    if not isinstance(op, ElementwiseOp) or known.isdisjoint(op.operands):
        return False
    return shape_of(op.results[0]) == shape


@dataclass(frozen=True, eq=False)
class ProductCandidate(Candidate[S]):
    """A candidate whose kernel is a `Product`, by schedules of class `S`."""

    group: FusedOp
    machine: Machine
    found: ProductMatch

    @property
    @abstractmethod
    def layouts(self) -> Sequence[LayoutChoice]:
        """See `Candidate`."""

    @abstractmethod
    def extents(self) -> tuple[int, int, int, int]:
        """Return the batches, rows, columns and K of the product."""

    @cached_property
    def size(self) -> Size:
        """Return the size of the product, with all tensors in the layouts of their types."""
        values = (*self.group.inputs, *self.group.outputs)
        bytes_ = sum(storage_bytes(v.type) for v in values)
        layouts = [layout_of(operand.type) for operand in self.found.op.operands]
        return Size(*self.extents(), self.found.kind, bytes_, self.copied(layouts))

    @abstractmethod
    def copied(self, layouts: Sequence[Layout]) -> tuple[int, int]:
        """Return for each operand in these layouts the contiguous bytes that are copied together:
        up to 16.
        """

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Take any strides: each operand and result is addressed by its own."""
        return True

    @abstractmethod
    def seconds(self, choice: LayoutChoice) -> float:
        """See `Candidate`."""

    @abstractmethod
    def space(self, level: int) -> Iterator[S]:
        """See `Candidate`."""

    @abstractmethod
    def emit(self, symbol: str, schedule: S) -> Kernel:
        """See `Candidate`."""


@dataclass(frozen=True, eq=False)
class TiledProduct(ProductCandidate[Tiles]):
    """A product by tiles of `mma.sync`, or of multiply-adds of f32."""

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of the default tiles."""
        slow = 1.0 if choice == self.layouts[0] else self.slowdown
        operands = dict(zip(self.group.body.block.args, choice.operands, strict=True))
        layouts = [operands[cast(BlockArgument, value)] for value in self.found.op.operands]
        size = replace(self.size, copied=self.copied(layouts))
        return slow * seconds(size, next(schedules(size, self.machine, 0)), self.machine)

    @property
    def slowdown(self) -> float:
        """Slowdown of layouts that are not preferred."""
        return 1.05

    def space(self, level: int) -> Iterator[Tiles]:
        """Return the tiles by predicted time."""
        return schedules(self.size, self.machine, level)

    def emit(self, symbol: str, schedule: Tiles) -> Kernel:
        """Return an entry, a block a tile or a part of its K, and then one that adds
        parts up.
        """
        placement = Placement.of(self.group)
        product = Product.of(self.found, placement, schedule)
        entries = [
            ProductEntry(
                product.blocks,
                schedule.threads,
                product.shared_bytes,
                product.constants,
                lambda code, values, name, rest: product.emit(code, values, name, *rest),
            )
        ]
        partial = product.partial
        if partial is not None:
            entries.append(totals_entry(product))
        scratch = 0 if partial is None else partial.bytes
        buffers = placement.buffers
        kernel = kernel_of_entries(
            entries, buffers, symbol, self.group, self.machine, scratch, product.in_place(buffers)
        )
        work = BlockWork(
            product.block_flops,
            peak_rate(self.found.kind, self.machine),
            share_of(schedule, self.size),
            product.copied_bytes,
            product.in_flight_bytes,
        )
        return replace(kernel, work=(work,))


Emit = Callable[[Code, Mapping[SSAValue, SSAValue], str, Sequence[SSAValue]], None]
"""Emits the code of a thread: of the entry's arguments for the kernel's, its name, and what else
it has: the beginning of scratch memory, if there is any, and tensor maps."""


@dataclass(frozen=True)
class ProductEntry:
    """An entry of a product's kernel: its launch, its resources, and its code."""

    blocks: int
    threads: int
    shared_bytes: int
    constants: Sequence[Operation]
    emit: Emit
    tensor_maps: tuple[TensorMap, ...] = ()


def totals_entry(product: Product) -> ProductEntry:
    """Return the entry that adds up the parts of split-K."""
    return ProductEntry(
        blocks_for(product.total_threads),
        THREADS,
        0,
        product.constants,
        lambda code, values, _, rest: product.emit_totals(code, values, *rest),
    )


_REGISTERS = 65_536
"""The registers of a multiprocessor."""
_ENOUGH = 128
"""Registers of a thread of the smallest tiles."""


def _is_held_by_memory(own: ProductEntry, machine: Machine) -> bool:
    """Return whether shared memory allows no more blocks than registers do, enough to a thread.

    The assembler, which knows nothing of that memory, would rather spill a few registers.
    """
    if not own.shared_bytes:
        return False
    blocks = shared_memory(machine) // own.shared_bytes
    return blocks * own.threads * _ENOUGH <= _REGISTERS


def kernel_of_entries(
    entries: Sequence[ProductEntry],
    buffers: Sequence[BlockArgument],
    symbol: str,
    group: FusedOp,
    machine: Machine,
    scratch_bytes: int = 0,
    in_place: tuple[InPlace, ...] = (),
) -> GpuKernel:
    """Return the kernel of a group whose operands and results are `buffers`."""
    scratch = [MemRefType(IntegerType(8), [scratch_bytes])] if scratch_bytes else []
    ops: list[Operation] = []
    launches: list[Launch] = []
    for number, own in enumerate(entries):
        name = f"{symbol}_{number}"
        types = [*(buffer.type for buffer in buffers), *scratch]
        single = bool(own.tensor_maps) or _is_held_by_memory(own, machine)
        made = gpu_function(name, types, own.threads, len(own.tensor_maps), single)
        body = made.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(buffers, body.args, strict=False))
        for op in own.constants:
            body.add_op(op.clone(values))
        code = Code(Builder(InsertPoint.at_end(body)))
        rest = body.args[len(buffers) :]
        if scratch:
            rest = [code.pointer(rest[0]), *rest[1:]]
        own.emit(code, values, name, rest)
        body.add_op(gpu.ReturnOp([]))
        if own.shared_bytes:
            ops.append(_shared_memory(name))
        ops.append(made)
        numbers = tuple(range(len(types)))
        launches.append(
            Launch(name, own.blocks, own.threads, numbers, own.shared_bytes, own.tensor_maps)
        )
    outside = (*group.inputs.types, *group.outputs.types)
    sizes = [buffer_bytes(b, own) for b, own in zip(buffers, outside, strict=True)]
    sizes += [scratch_bytes] if scratch else []
    return GpuKernel.of(
        Launches(symbol, tuple(launches), tuple(sizes), len(group.inputs), scratch_bytes > 0),
        ModuleOp([gpu_module(ops)]),
        scratch_bytes,
        in_place,
    )


def _shared_memory(entry: str) -> llvm.GlobalOp:
    """Return the shared memory of a size that the launch says."""
    return llvm.GlobalOp(
        llvm.LLVMArrayType(IntAttr(0), IntegerType(8)),
        dynamic_shared(entry),
        "external",
        addr_space=3,
        alignment=_SHARED_ALIGNMENT,
        body=Region(),
    )
