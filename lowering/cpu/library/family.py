"""The family of oneDNN's kernels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import (
    row_major_choice,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.library.emit import library_kernel
from braid.lowering.cpu.library.groups import LibraryGroup, match_library
from braid.lowering.cpu.library.preferred import is_supported, preferred_weight
from braid.lowering.cpu.library.primitives import (
    Kind,
    PostOp,
    Primitive,
    Tensor,
    program_of,
)
from braid.support.shared_objects import ONEDNN, loaded_library
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.cpus import NATIVE, cpu_machine

_PART_OF_PEAK = 0.5
"""Assumed where nothing was measured: a generated kernel that is predicted to do better stays."""


@dataclass(frozen=True)
class OneDnnFamily(VectorFamily):
    """Convolutions, products, pooling, softmax and layer normalization of f32 by oneDNN.

    Elementwise ops on the result are a chain of post-ops. Weights are in the layout that the
    library likes best for this machine. It matches nothing if the library is not installed, or for
    a CPU other than this one, whose best layouts it does not know. If it `is_strict`, it rejects
    the library's approximations of functions.
    """

    name: str = "onednn"
    version: int = 1
    is_strict: bool = False

    def match(self, group: FusedOp) -> "_Primitive | None":
        """Match one primitive of block arguments, the rest elementwise on its result."""
        if not self._is_here:
            return None
        found = match_library(group, is_strict=self.is_strict)
        return None if found is None else _Primitive(group, self.unit, found)

    @cached_property
    def _is_here(self) -> bool:
        here = cpu_machine(NATIVE)
        same = (self.machine.triple, self.machine.cpu) == (here.triple, here.cpu)
        return same and loaded_library(ONEDNN) is not None


@dataclass(frozen=True, eq=False)
class _Primitive(VectorCandidate):
    found: LibraryGroup

    def choices(self) -> Sequence[LayoutChoice]:
        """Return channels last, in blocks or first for images, with the weights that suit each."""
        anchor = self.found.anchor
        if isinstance(anchor, ConvOp | PoolOp):
            layouts = [Layout.channels_last(4), Layout.row_major(4)]
            channels = (shape_of(anchor.operands[0])[1], shape_of(anchor.results[0])[1])
            if all(count % self.unit.lanes == 0 for count in channels):
                layouts.insert(0, Layout.channel_blocks(4, self.unit.lanes))
            plain = [uniform_choice(self.group, layout, self._row_major) for layout in layouts]
        else:
            plain = [row_major_choice(self.group)]
        if isinstance(anchor, ConvOp | MatmulOp):
            packed = (self._with_preferred(choice) for choice in plain)
            found = [choice for choice in packed if choice is not None]
            if isinstance(anchor, MatmulOp):
                found += plain
            return list(dict.fromkeys(c for c in found if is_supported(self.primitive(c))))
        return [choice for choice in plain if is_supported(self.primitive(choice))]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic, at a part of the peak, and memory traffic."""
        arithmetic = _flops(self.found) / (self.unit.flops * _PART_OF_PEAK)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one call of the library."""
        anchor, inputs = self.found.anchor, len(self.group.inputs)
        program = program_of(self.primitive(stored_choice(self.group)))
        operands = [_index(value) for value in anchor.operands]
        extra = [step.operand.index for step in self.found.steps if step.operand is not None]
        return library_kernel(self.group, symbol, program, [*operands, *extra, inputs, None])

    @property
    def _row_major(self) -> dict[int, Layout]:
        return {_index(v): Layout.row_major(4) for v in self.found.anchor.operands[1:]}

    def _with_preferred(self, choice: LayoutChoice) -> LayoutChoice | None:
        """Return `choice` with the weight as the library would have it."""
        anchor = self.found.anchor
        weight = _index(anchor.operands[1])
        tag = preferred_weight(self.primitive(choice))
        if tag is None:
            return None
        try:
            layout = Layout.parse(_without_groups(tag) if self._has_groups else tag)
        except (InvalidLayout, ValueError):
            return None
        return replace(choice, operands=_replaced(choice.operands, weight, layout))

    @property
    def _has_groups(self) -> bool:
        anchor = self.found.anchor
        return isinstance(anchor, ConvOp) and anchor.groups.value.data > 1

    def primitive(self, choice: LayoutChoice) -> Primitive:
        """Return the library's primitive in these layouts."""
        anchor = self.found.anchor

        def tensor(value: SSAValue) -> Tensor:
            layout = choice.operands[_index(value)]
            return Tensor(tuple(shape_of(value)), layout.tag)

        result = Tensor(tuple(shape_of(anchor.results[0])), choice.results[0].tag)
        post_ops = tuple(
            PostOp(s.name, s.alpha, s.beta, None if s.operand is None else tensor(s.operand))
            for s in self.found.steps
        )
        source, *weights = map(tensor, anchor.operands)
        match anchor:
            case ConvOp():
                if self._has_groups:
                    weights = [_with_groups(weights[0], anchor.groups.value.data)]
                win = anchor.windows
                sizes = (tuple(win.size), tuple(win.strides), tuple(win.dilations))
                return Primitive(Kind.CONVOLUTION, source, tuple(weights), result, post_ops, *sizes)
            case MatmulOp():
                return Primitive(Kind.MATMUL, source, tuple(weights), result, post_ops)
            case PoolOp():
                win = anchor.windows
                sizes = (tuple(win.size), tuple(win.strides), tuple(win.dilations))
                if anchor.combine == "add":
                    count = PostOp("linear", float(math.prod(win.size)), 0.0)
                    post_ops = (count, *post_ops)
                kind = Kind.AVERAGE_POOL if anchor.combine == "add" else Kind.MAX_POOL
                return Primitive(kind, source, (), result, post_ops, *sizes)
            case SoftmaxOp():
                dim = anchor.dim.value.data
                return Primitive(Kind.SOFTMAX, source, (), result, post_ops, number=dim)
            case LayerNormOp():
                length = shape_of(anchor.input)[-1]
                rows = (Tensor((length,), "a"), Tensor((length,), "a"))
                epsilon = anchor.epsilon.value.data
                return Primitive(Kind.LAYER_NORM, source, rows, result, post_ops, number=epsilon)


def _index(value: SSAValue) -> int:
    assert isinstance(value, BlockArgument)
    return value.index


def _replaced(layouts: Sequence[Layout], index: int, layout: Layout) -> tuple[Layout, ...]:
    return tuple(layout if i == index else each for i, each in enumerate(layouts))


def _with_groups(weight: Tensor, groups: int) -> Tensor:
    """Return a weight [O, C / groups, …] as the library has it: [groups, O / groups, C / groups,
    …].

    The channels that a group makes stand within its dim. For depthwise convolutions the dim of
    output channels is next to that of input channels, which is 1 as well: the library looks for
    their stride there.
    """
    outputs, *rest = weight.shape
    shape = (groups, outputs // groups, *rest)
    later = weight.tag.translate(str.maketrans("bcdBCD", "cdeCDE"))
    if shape[1] == rest[0] == 1:
        return Tensor(shape, later.replace("c", "bc", 1))
    head = "A" if "A" in later else "a"
    return Tensor(shape, later.replace(head, f"{head}b", 1))


def _without_groups(tag: str) -> str:
    """Return the reverse, for a tag that does not split the channels of a group.

    Raises ValueError for one that does.
    """
    if "B" in tag or "b" not in tag:
        raise ValueError(f"'{tag}' splits the channels of a group")
    return tag.replace("b", "", 1).translate(str.maketrans("cdeCDE", "bcdBCD"))


def _flops(found: LibraryGroup) -> float:
    anchor = found.anchor
    elements = math.prod(shape_of(anchor.results[0]))
    match anchor:
        case ConvOp():
            return 2.0 * elements * math.prod(shape_of(anchor.weight)[1:])
        case MatmulOp():
            return 2.0 * elements * shape_of(anchor.lhs)[-1]
        case PoolOp():
            return 4.0 * elements * math.prod(anchor.windows.size)
        case _:
            return 16.0 * elements
