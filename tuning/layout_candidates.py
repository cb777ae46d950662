"""List the kernels that layout selection asks about: those of all groups in all layouts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.targets.costs.device_costs import reorder_group
from braid.targets.kernels.flexible_layouts import as_typed, flexible_choices
from braid.targets.kernels.group_matches import Match, match_group
from braid.targets.kernels.kernel_family import GENERIC, Kernel, KernelFamily
from braid.targets.kernels.keys import record_key

_HOPELESS = 8
"""Times the best prediction at which a generic kernel is not measured any more."""


@dataclass(frozen=True)
class Candidate:
    """A group in the layouts of `choice`; `family` is None for the generic lowering.

    `predicted` is the family's prediction in seconds; 0 for the generic lowering, which has none.
    """

    group: FusedOp
    choice: LayoutChoice
    family: KernelFamily | None = None
    predicted: float = 0.0

    @property
    def key(self) -> str:
        """Under which the measurement is recorded."""
        return record_key(self.group, self.choice, self.family)

    @property
    def is_generic(self) -> bool:
        """Return whether the generic lowering makes the kernel."""
        return self.family is None or self.family.name == GENERIC

    def describe(self) -> str:
        """Describe the candidate: the ops, the result's type and the layouts."""
        ops = [op.name for op in self.group.body.block.ops if op is not self.group.terminator]
        layouts = [str(x) for x in (*self.choice.operands, *self.choice.results)]
        shape = "x".join(map(str, shape_of(self.group.outputs[0])))
        return f"{' '.join(ops)} -> {shape}: {' '.join(layouts)}"

    def kernel(self, symbol: str) -> Kernel:
        """Return the kernel with the default schedule. Raises BraidError where it cannot be
        emitted.
        """
        group = in_layouts(self.group, self.choice)
        if self.family is None:
            return emit_fallback(group, symbol)
        match = match_group(self.family, group)
        assert match is not None, "whether a family takes a group depends on its layouts"
        return match.emit(symbol, match.default_schedule())


def layout_candidates(
    module: ModuleOp, families: Sequence[KernelFamily]
) -> Iterator[list[Candidate]]:
    """Return the candidates that are only worth measuring together, each set once.

    One set holds all choices of one group, or all reorders of tensors of one type. `module` is
    what `select-layouts` would read. Groups with open dims are left out, and reorders of weights,
    which are made at compile time.
    """
    expressions = ParameterExpressions()
    seen: set[str] = set()
    layouts: dict[Attribute, dict[Layout, None]] = {}
    for group in _groups(module):
        candidates = group_candidates(group, families)
        for candidate in candidates:
            for value, layout in _stored(candidate):
                if not expressions.is_known(value):
                    layouts.setdefault(_plain(value), {})[layout] = None
        if candidates and candidates[0].key not in seen:
            seen.add(candidates[0].key)
            yield candidates
    for tensor, found in layouts.items():
        if len(found) > 1:
            yield _reorders(_tensor(tensor), list(found), families)


def group_candidates(group: FusedOp, families: Sequence[KernelFamily]) -> list[Candidate]:
    """Return every choice of every family, or of the generic lowering where no family takes
    `group`.

    The generic lowering is left out if it is predicted to take many times as long, since no
    measurement would make it win.
    """
    candidates = [
        Candidate(group, choice, match.family, match.candidate.seconds(choice))
        for match in _matches(group, families)
        for choice in match.layouts
    ]
    if not candidates:
        return [Candidate(group, choice) for choice in flexible_choices(group)]
    limit = _HOPELESS * min(candidate.predicted for candidate in candidates)
    return [c for c in candidates if not c.is_generic or c.predicted <= limit]


def in_layouts(group: FusedOp, choice: LayoutChoice) -> FusedOp:
    """Return a copy of `group`, on operands of its own, with the layouts of `choice` in its
    types.
    """
    types = [
        with_layout(_tensor(value.type), layout)
        for value, layout in zip(group.operands, choice.operands, strict=True)
    ]
    region = group.body.clone()
    block = region.block
    region.detach_block(block)
    for argument, type in zip(list(block.args), types, strict=True):
        Rewriter.replace_value_with_new_type(argument, type)
    end = block.last_op
    assert end is not None
    for index, layout in enumerate(choice.results):
        value = end.operands[index]
        Rewriter.replace_value_with_new_type(value, with_layout(_tensor(value.type), layout))
    outside = Block(arg_types=types)
    kept = {name: group.attributes[name] for name in (STREAM,) if name in group.attributes}
    copy = FusedOp(outside.args, [value.type for value in end.operands], block, kept)
    outside.add_op(copy)
    return copy


def _groups(module: ModuleOp) -> Iterator[FusedOp]:
    for function in runtime_functions(module):
        for op in function.walk():
            if isinstance(op, FusedOp) and not _is_open(op):
                yield op


def _is_open(group: FusedOp) -> bool:
    values = (*group.operands, *group.results)
    return any(DYNAMIC in shape_of(v) for v in values if isinstance(v.type, TensorType))


def _stored(candidate: Candidate) -> Iterator[tuple[SSAValue, Layout]]:
    group, choice = candidate.group, candidate.choice
    yield from zip(group.operands, choice.operands, strict=True)
    yield from zip(group.results, choice.results, strict=True)


def _plain(value: SSAValue) -> Attribute:
    """Return the type without a layout."""
    return with_layout(_tensor(value.type), Layout.row_major(len(shape_of(value))))


def _reorders(
    tensor: AnyTensor, layouts: Sequence[Layout], families: Sequence[KernelFamily]
) -> list[Candidate]:
    result: list[Candidate] = []
    for source, target in permutations(layouts, 2):
        group = reorder_group(tensor, source, target)
        choice, matches = as_typed(group), _matches(group, families)
        result += [Candidate(group, choice, m.family, m.candidate.seconds(choice)) for m in matches]
        result += [] if matches else [Candidate(group, choice)]
    return result


def _matches(group: FusedOp, families: Sequence[KernelFamily]) -> list[Match]:
    found = (match_group(family, group) for family in families)
    return [match for match in found if match is not None]


def _tensor(type: Attribute) -> AnyTensor:
    return cast(AnyTensor, type)
