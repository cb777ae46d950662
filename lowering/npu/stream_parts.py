"""Divide a function into parts that chips run at once: adjacent ops, one stream each."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from braid.analysis.storage.tensor_storage import is_addressing
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.clusters import Placement, placement_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.passes.order.block_graph import LEAVES
from braid.targets.costs.backend_support import is_supported
from braid.targets.machines.resolve import device_of, runs_on
from braid.targets.machines.target import BackendDescription, Target


@dataclass(frozen=True, eq=False)
class StreamPart:
    """A part that `device` runs at once: `members`, in their order, are ops of `block`.

    In a function without clusters these are adjacent ops, or all ops (`whole`).
    """

    block: Block
    members: tuple[Operation, ...]
    device: str
    cluster: int | None = None
    whole: bool = False

    @property
    def has_instructions(self) -> bool:
        """Return whether the part is more than constants and views of tensors."""
        return not all(isinstance(op, LEAVES) or is_addressing(op) for op in self.members)

    @property
    def inputs(self) -> list[SSAValue]:
        """Return the values that the members read of others, each once."""
        inside = set(self.members)
        read = (v for op in self.members for v in _read_by(op) if v.owner not in inside)
        return list(dict.fromkeys(read))

    @property
    def handed_on(self) -> list[SSAValue]:
        """Return the results that others read."""
        inside = set(self.members)
        results = [result for op in self.members for result in op.results]
        return [r for r in results if any(not is_in(use.operation, inside) for use in r.uses)]

    @cached_property
    def alone(self) -> Block:
        """A block that takes their operands and returns the values that others read; their own
        block if whole."""
        if self.whole:
            return self.block
        inputs, handed = self.inputs, self.handed_on
        alone = Block(arg_types=[value.type for value in inputs])
        values: dict[SSAValue, SSAValue] = dict(zip(inputs, alone.args, strict=True))
        for op in self.members:
            alone.add_op(op.clone(values))
        alone.add_op(func.ReturnOp(*(values[value] for value in handed)))
        types = [value.type for value in handed]
        func.FuncOp("part", (alone.arg_types, types), Region(alone))
        return alone


def stream_parts(
    function: func.FuncOp, target: Target, devices: Collection[str] = ()
) -> Iterator[StreamPart]:
    """Yield what chips run of the function; where ops have clusters, each of a chip's clusters.

    With `devices`, only parts of these.
    """
    clusters: dict[Placement, list[Operation]] = {}
    for block in blocks_outside_groups(function):
        for op in block.ops:
            if STREAM not in op.attributes and (placement := placement_of(op)) is not None:
                clusters.setdefault(placement, []).append(op)
    if not clusters and runs_on(function, devices, target):
        device = device_of(function, target)
        yield from _parts_in(function.body.block, target.backend_of(device), device.name)
    for placement, ops in clusters.items():
        chip = target.backend_of(target.device(placement.device))
        block = ops[0].parent
        if (devices and placement.device not in devices) or all(isinstance(o, LEAVES) for o in ops):
            continue
        if chip.issue is not None and block is not None and all(_runs_on(op, chip) for op in ops):
            yield StreamPart(block, (*ops,), placement.device, placement.cluster)


def _parts_in(block: Block, chip: BackendDescription, device: str) -> Iterator[StreamPart]:
    """Yield what `chip` runs of `block` and the blocks in it."""
    run: list[Operation] = []
    parts: list[StreamPart] = []
    whole = isinstance(block.parent_op(), func.FuncOp)
    for op in [*block.ops]:
        if op.has_trait(IsTerminator):
            continue
        if isinstance(op, LEAVES) or _runs_on(op, chip):
            run.append(op)
            continue
        whole = False
        parts += _part(block, run, device)
        run = []
        for region in op.regions if not isinstance(op, GroupOp) else ():
            for inner in region.blocks:
                parts += _parts_in(inner, chip, device)
    yield from [StreamPart(block, (*run,), device, whole=True)] if whole else parts
    yield from () if whole else _part(block, run, device)


def _part(block: Block, run: Sequence[Operation], device: str) -> Iterator[StreamPart]:
    if not all(isinstance(op, LEAVES) for op in run):
        yield StreamPart(block, (*run,), device)


def _runs_on(op: Operation, chip: BackendDescription) -> bool:
    return isinstance(op, TensorOp | GroupOp | OpaqueOp) and is_supported(op, chip)


def _read_by(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of the op and of its regions that are values from outside."""
    for inner in op.walk():
        for operand in inner.operands:
            owner = operand.owner
            around = owner if isinstance(owner, Operation) else owner.parent_op()
            if not is_in(around, {op}):
                yield operand


def is_in(op: Operation | None, ops: Collection[Operation]) -> bool:
    """Return whether `op` is one of `ops`, or in a region of one."""
    while op is not None and op not in ops:
        op = op.parent_op()
    return op is not None
