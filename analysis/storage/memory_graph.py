"""A block as arrays: ops, the tensors between them, their bytes, paths, and the peak.

Reshapes between row-major tensors are views: they are not ops here, and a view stands for the
tensor that it shows. Values that are not tensors count as tensors without bytes. Constants,
parameters and values from outside of the block are tensors without a producer; they take no bytes
of the arena. An op with regions (`scf.if`, …) is one op that reads what its regions read and needs
the peak inside them as workspace.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.tensor_storage import is_view, logical_bytes, storage_bytes
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.support.errors import UnsupportedError
from braid.support.option_names import option_text


def viewed(value: SSAValue) -> SSAValue:
    """Return the tensor whose memory `value` is: itself, unless it is a view."""
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    return value


def value_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor in its layout, or as an opaque op declares them; 0 for other
    values.

    In an abstract layout a tensor takes its elements' bytes.

    Raises UnsupportedError for open dims.
    """
    owner, type = value.owner, value.type
    if not isinstance(type, TensorType):
        return 0
    if isinstance(owner, OpaqueOp) and isinstance(value, OpResult) and owner.bytes is not None:
        return owner.bytes.get_values()[value.index]
    tensor = cast("TensorType[Any]", type)
    if DYNAMIC in tensor.get_shape():
        where = owner.parent_op() if isinstance(owner, Block) else owner
        raise UnsupportedError(
            f"a tensor has an open dim, {tensor}; its bytes are not known",
            location=None if where is None else source_location(where),
            hint="give the shapes of the inputs: in the types of a module, or of an ONNX model "
            f"by {option_text('shapes', {'name': (1, 3, 224, 224)})}",
        )
    return logical_bytes(tensor) if layout_of(tensor).is_abstract else storage_bytes(tensor)


@dataclass(frozen=True)
class MemoryGraph:
    """The ops of a block in their order, and the tensors that they read and make.

    `inputs[i]` and `outputs[i]` are tensor numbers of op i, each once; `sizes[t]` is in bytes;
    `producer[t]` is an op number, -1 for none; `readers[t]` are op numbers, ascending, without
    the terminator; `results` are the tensors that the terminator hands on.
    """

    block: Block
    ops: tuple[Operation, ...]
    tensors: tuple[SSAValue, ...]
    sizes: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    workspace: tuple[int, ...]
    results: frozenset[int]

    @staticmethod
    def of(block: Block) -> "MemoryGraph":
        """Return the graph of `block`. Raises UnsupportedError for open dims."""
        ops = tuple(op for op in block.ops if _is_op(op))
        numbers: dict[SSAValue, int] = {}

        def number(values: Iterator[SSAValue]) -> tuple[int, ...]:
            tensors = (viewed(value) for value in values)
            return tuple(dict.fromkeys(numbers.setdefault(t, len(numbers)) for t in tensors))

        inputs = tuple(number(_reads(op)) for op in ops)
        outputs = tuple(number(iter(op.results)) for op in ops)
        last = block.last_op
        leaving = last is not None and last.has_trait(IsTerminator)
        results = number(iter(last.operands)) if last is not None and leaving else ()
        sizes = tuple(value_bytes(tensor) for tensor in numbers)
        workspace = tuple(_inner_peak(op) for op in ops)
        return MemoryGraph(
            block, ops, tuple(numbers), sizes, inputs, outputs, workspace, frozenset(results)
        )

    @cached_property
    def number(self) -> dict[SSAValue, int]:
        """The number of each tensor."""
        return {tensor: index for index, tensor in enumerate(self.tensors)}

    @cached_property
    def producer(self) -> tuple[int, ...]:
        """The op that makes each tensor, -1 where it comes from elsewhere."""
        producer = [-1] * len(self.tensors)
        for index, made in enumerate(self.outputs):
            for tensor in made:
                producer[tensor] = index
        return tuple(producer)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The ops that read each tensor, ascending."""
        readers: list[list[int]] = [[] for _ in self.tensors]
        for index, read in enumerate(self.inputs):
            for tensor in read:
                readers[tensor].append(index)
        return tuple(tuple(ops) for ops in readers)

    @cached_property
    def arena_sizes(self) -> tuple[int, ...]:
        """Bytes of each tensor in the arena: 0 for those that are made elsewhere."""
        return tuple(s if p >= 0 else 0 for s, p in zip(self.sizes, self.producer, strict=True))

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """The last op during which each tensor is live; that is the last op for results."""
        end = len(self.ops) - 1
        return tuple(
            end if tensor in self.results else max((maker, *readers))
            for tensor, (maker, readers) in enumerate(zip(self.producer, self.readers, strict=True))
        )

    @cached_property
    def profile(self) -> NDArray[np.int64]:
        """Bytes of the arena that are live while each op runs, in the block's order."""
        change = np.zeros(len(self.ops) + 1, dtype=np.int64)
        for tensor, maker in enumerate(self.producer):
            if maker >= 0:
                change[maker] += self.sizes[tensor]
                change[self.last_use[tensor] + 1] -= self.sizes[tensor]
        return np.cumsum(change[:-1]) + np.array(self.workspace, dtype=np.int64)

    @property
    def peak(self) -> int:
        """The most bytes that are live at once."""
        return int(self.profile.max(initial=0))

    @cached_property
    def outside_profile(self) -> NDArray[np.int64]:
        """Bytes of tensors made elsewhere that are live while each op runs.

        These are inputs, weights and values of surrounding blocks, from the first op to their last
        use.
        """
        change = np.zeros(len(self.ops) + 1, dtype=np.int64)
        for tensor, maker in enumerate(self.producer):
            if maker < 0:
                change[0] += self.sizes[tensor]
                change[self.last_use[tensor] + 1] -= self.sizes[tensor]
        return np.cumsum(change[:-1])

    def peak_between(self, first: int, last: int, *, everything: bool = False) -> int:
        """Return the most bytes that are live while an op on a path between two others runs.

        `everything` counts tensors that are made elsewhere too.
        """
        live = self.profile + self.outside_profile if everything else self.profile
        between = [op for op in range(first + 1, last) if self._is_between(op, first, last)]
        return int(live[between].max(initial=0))

    def _is_between(self, op: int, first: int, last: int) -> bool:
        return bool(self._descendants[first] >> op & 1 and self._descendants[op] >> last & 1)

    @cached_property
    def _descendants(self) -> tuple[int, ...]:
        """The ops that depend on each op, as a bit set."""
        below = [0] * len(self.ops)
        for op in reversed(range(len(self.ops))):
            for tensor in self.outputs[op]:
                for reader in self.readers[tensor]:
                    below[op] |= below[reader] | 1 << reader
        return tuple(below)

    def has_indirect_path(self, first: int, last: int) -> bool:
        """Return whether `last` depends on `first` through another op, not only directly."""
        return any(
            self._descendants[reader] >> last & 1
            for tensor in self.outputs[first]
            for reader in self.readers[tensor]
        )

    def can_recompute(self, op: int) -> bool:
        """Return whether op number `op` can run twice."""
        return is_recomputable(self.ops[op])


def is_recomputable(op: Operation) -> bool:
    """Return whether running `op` again gives the same and changes nothing else; not
    control flow.
    """
    simple = not op.regions or isinstance(op, GroupOp)
    return simple and bool(op.results) and is_side_effect_free(op)


def _is_op(op: Operation) -> bool:
    return not (is_leaf(op) or is_view(op) or op.has_trait(IsTerminator))


def _reads(op: Operation) -> Iterator[SSAValue]:
    """Return the values that `op` and its regions read from its block or outside of it."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            for operand in inner.operands:
                if not _is_inside(operand, op):
                    yield operand


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    ancestor = owner.parent_op()
    while ancestor is not None and ancestor is not op:
        ancestor = ancestor.parent_op()
    return ancestor is op


def _inner_peak(op: Operation) -> int:
    if isinstance(op, GroupOp):
        return 0
    blocks = (block for region in op.regions for block in region.blocks)
    return max((MemoryGraph.of(block).peak for block in blocks), default=0)
