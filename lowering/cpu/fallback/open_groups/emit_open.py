"""A kernel for any group of ops with open dims: step by step, on scalars."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i8,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from braid.analysis.diagnostics.locations import located_at, source_location
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import (
    DecomposableOp,
    IndirectOp,
    StructuredOp,
    TensorOp,
    element_type_of,
    extents_of,
    shape_of,
)
from braid.dialects.braid.buffer import ALIGNMENT
from braid.dialects.braid.constants import ConstantOp, IotaOp
from braid.dialects.braid.decomposition import decompose_op
from braid.dialects.braid.dtypes import bytes_of, is_stored_only, numpy_from_dense
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import BroadcastOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.sized_ops import SizedOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.lowering.common.argument_attributes import NOALIAS, argument_attributes
from braid.lowering.common.element_types import compute_type, constant, signless
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.fallback.open_groups.computed_ops import computed
from braid.lowering.cpu.fallback.open_groups.stages import results_of
from braid.lowering.cpu.fallback.open_groups.steps import Step, filling
from braid.lowering.cpu.fallback.open_groups.tensors import (
    ComputedTensor,
    Point,
    StoredTensor,
    Tensor,
)
from braid.lowering.cpu.fallback.open_groups.writers import WRITING, written_by
from braid.lowering.cpu.unit.kernel_function import OPEN_ELEMENTS, stored_type
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.kernel_family import Kernel

_DEEPEST = 24
"""Nested ops that are computed where they are read: each is a separate call."""


def is_open(group: FusedOp) -> bool:
    """Return whether a group has sizes that are known only when it runs."""
    ops = group.body.block.ops
    results = (result for op in ops for result in op.results)
    return any(isinstance(op, SizedOp) for op in ops) or _any_open(
        (*group.body.block.args, *results)
    )


def _any_open(values: Iterable[SSAValue]) -> bool:
    return any(isinstance(v.type, TensorType) and DYNAMIC in shape_of(v) for v in values)


def emit_open(group: FusedOp, symbol: str) -> Kernel:
    """Return the kernel of a group whose types have sizes, in the layouts of its types.

    Raises UnsupportedError for an op without code, and for an open dim whose size has no name.
    """
    own = group.clone()
    try:
        with located_at(group.body.block.first_op or group):
            _decompose(own)
            return _Kernel.of(own).emitted(symbol)
    finally:
        own.drop_all_references()


def _decompose(group: FusedOp) -> None:
    """Replace ops by others where these need to know no open extent."""
    pending = [op for op in group.body.block.ops if isinstance(op, DecomposableOp)]
    while pending:
        op = pending.pop()
        if isinstance(op, ScanOp | ConvTransposeOp):
            continue
        try:
            made = decompose_op(op)
        except UnsupportedError:
            if not isinstance(op, ResizeOp):
                raise
            continue
        pending += [inner for inner in made if isinstance(inner, DecomposableOp)]


@dataclass
class _Kernel:
    """A kernel in the making: where tensors are, and the steps that compute them."""

    group: FusedOp
    e: Emitter
    scratch: SSAValue
    tensors: dict[SSAValue, Tensor]
    results: list[StoredTensor]
    steps: list[Step] = field(default_factory=list[Step])
    scratch_bytes: Extent = 0
    constants: list[Any] = field(default_factory=list[Any])
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @staticmethod
    def of(group: FusedOp) -> "_Kernel":
        """Return the kernel whose steps are still to be found."""
        values: list[SSAValue] = [*group.inputs, *group.outputs]
        choice = stored_choice(group)
        layouts = (*choice.operands, *choice.results)
        types = [stored_type(v.type, layout) for v, layout in zip(values, layouts, strict=True)]
        bytes = MemRefType(i8, [OPEN_ELEMENTS])
        entry = Block(arg_types=[*types, bytes, IndexType(), IndexType()])
        e = Emitter(entry, _Scalars())
        found = [
            StoredTensor(_named(value), element_type_of(value), Buffer.of(e, argument).ref, layout)
            for argument, value, layout in zip(entry.args, values, layouts, strict=False)
        ]
        count = len(group.inputs)
        tensors: dict[SSAValue, Tensor] = dict(
            zip(group.body.block.args, found[:count], strict=True)
        )
        return _Kernel(group, e, entry.args[len(values)], tensors, found[count:])

    def emitted(self, symbol: str) -> Kernel:
        """Return the kernel: its steps in order, or the iterations of the only one."""
        for op in self.group.body.block.ops:
            if op is not self.group.terminator:
                self._add(op)
        for number, value in enumerate(self.group.terminator.arguments):
            if self.tensors[value] is not self.results[number]:
                self.steps.append(filling(self.e, self.results[number], self.tensors[value]))
        steps, e = self.steps, self.e
        begin, end = e.iterations
        if len(steps) == 1:
            grid: Extent = steps[0].grid
            e.loop(begin, end, 1, steps[0].run)
        else:
            grid = 1
            e.loop(begin, end, 1, self._run)
        e.effect(func.ReturnOp())
        module, bytes = self._module(symbol), self.scratch_bytes
        return Kernel(symbol, module, grid, bytes, sizes=e.sizes)

    def _run(self, _: Index) -> None:
        """Append all iterations of all steps."""
        for step in self.steps:
            self.e.loop(0, step.grid, 1, step.run)

    def _module(self, symbol: str) -> ModuleOp:
        entry = cast(Block, self.scratch.owner)
        inputs, outputs = len(self.group.inputs), len(self.group.outputs)
        attributes = list(argument_attributes(inputs, outputs, (), len(self.e.sizes)))
        if self.scratch_bytes == 0:
            entry.erase_arg(cast(Any, self.scratch))
        else:
            attributes.insert(inputs + outputs, NOALIAS)
        function = func.FuncOp(
            symbol,
            ([argument.type for argument in entry.args], []),
            Region(entry),
            arg_attrs=ArrayAttr(attributes),
        )
        return ModuleOp([*self.constants, function])

    def _add(self, op: Any) -> None:
        """Find how the results of an op are computed."""
        if not isinstance(op, TensorOp):
            # Other ops in the group without open dims, such as a tensor.empty, are not the missing
            # ones.
            others = (each for each in self.group.body.block.ops if not isinstance(each, TensorOp))
            missing = next(filter(_has_open_dims, others), op)
            raise UnsupportedError(
                f"no code for '{missing.name}' with open dims",
                location=source_location(missing),
                hint="give the shape",
            )
        operands = [self.tensors[value] for value in op.operands]
        if isinstance(op, WRITING):
            targets = [self._target(result) for result in op.results]
            self.steps += written_by(self.e, op, operands, targets)
            self.tensors.update(zip(op.results, targets, strict=True))
            return
        if isinstance(op, ConstantOp):
            found = [self._constant(op)]
        elif isinstance(op, StructuredOp | IndirectOp):
            found = results_of(op, operands, self._kept)
        else:
            found = [computed(op, operands)]
        for result, tensor in zip(op.results, found, strict=True):
            if not isinstance(tensor, StoredTensor) and not self._is_inside(op, result):
                target = self._target(result)
                self.steps.append(filling(self.e, target, tensor))
                tensor = target
            self.tensors[result] = tensor

    def _is_inside(self, op: TensorOp, result: SSAValue) -> bool:
        """Return whether elements are computed where they are read, because each is read once."""
        users = [use.operation for use in result.uses]
        if self.group.terminator in users:
            return False
        depth = 1 + max((self.depths.get(value, 0) for value in op.operands), default=0)
        if depth > _DEEPEST:
            return False
        if not isinstance(op, ConstantOp | IotaOp):
            if not isinstance(op, ElementwiseOp | BroadcastOp):
                return False
            for user in users:
                is_pointwise = isinstance(user, ElementwiseOp) and _alike(user.results[0], result)
                if not is_pointwise and not (isinstance(user, ReduceOp) and len(users) == 1):
                    return False
        self.depths[result] = depth
        return True

    def _target(self, value: SSAValue) -> StoredTensor:
        """Return where a value is kept: in a result of the group if it is one."""
        for result, other in zip(self.results, self.group.terminator.arguments, strict=True):
            if other is value:
                return result
        return self._allocate(_named(value), element_type_of(value))

    def _kept(self, tensor: Tensor) -> Tensor:
        """Have a tensor computed once; return where."""
        target = self._allocate(tensor.extents, tensor.element_type)
        self.steps.append(filling(self.e, target, tensor))
        return target

    def _allocate(self, extents: Sequence[Extent], type: Attribute) -> StoredTensor:
        """Return new scratch memory of row-major order."""
        held = i8 if type == i1 else signless(type)
        offset = self.e.index(self.scratch_bytes)
        row = memref.ViewOp(self.scratch, offset, (), MemRefType(held, [OPEN_ELEMENTS]))
        bytes = product_of(extents) * bytes_of(type)
        # At least one line, so that there is scratch wherever something may point into it.
        self.scratch_bytes = self.scratch_bytes + (bytes // ALIGNMENT + 1) * ALIGNMENT
        layout = Layout.row_major(len(extents))
        return StoredTensor(tuple(extents), type, self.e.insert(row), layout)

    def _constant(self, op: ConstantOp) -> Tensor:
        """Return equal elements as a number, others as memory of the module."""
        type, array = element_type_of(op.output), numpy_from_dense(op.value)
        if is_stored_only(type):
            array = array.view(np.uint8)
        if array.size == 0 or (array == array.flat[0]).all():
            value = array.flat[0].item() if array.size else 0

            def element(e: Emitter, point: Point) -> SSAValue:
                return constant(e.builder, value, compute_type(type))

            return ComputedTensor(array.shape, type, element)
        held = i8 if type == i1 else signless(type)
        data = _elements(array.astype(np.uint8) if type == i1 else array, held)
        name = f"constant_{len(self.constants)}"
        row = MemRefType(held, [array.size])
        self.constants.append(memref.GlobalOp.get(StringAttr(name), row, data, constant=UnitAttr()))
        ref = self.e.insert(memref.GetGlobalOp(name, row))
        return StoredTensor(array.shape, type, ref, Layout.row_major(array.ndim))


@dataclass(frozen=True)
class _Scalars:
    """A machine whose vectors have one element."""

    lanes: int = 1
    has_fma: bool = False
    scaling: str | None = None


def _elements(array: Any, type: Any) -> DenseIntOrFPElementsAttr:
    """Return the elements of an array, in row-major order, as those of a signless type."""
    row = TensorType(type, [array.size])
    return DenseIntOrFPElementsAttr(row, BytesAttr(np.ascontiguousarray(array).tobytes()))


def _has_open_dims(op: Operation) -> bool:
    """Return whether a tensor that an op reads or makes has a dim without a number."""
    return _any_open((*op.operands, *op.results))


def _alike(a: SSAValue, b: SSAValue) -> bool:
    return extents_of(a) == extents_of(b)


def _named(value: SSAValue) -> tuple[Extent, ...]:
    """Return the extents of a tensor. Raises UnsupportedError for one without a name."""
    extents = extents_of(value)
    if DYNAMIC in extents:
        raise UnsupportedError(
            f"no code for a tensor of type {value.type}, whose open dims have no names",
            hint="give the shape",
        )
    return extents
