"""The peak that is kept up to date is the one of a plan made anew."""

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from braid.frontends.mlir import parse_mlir
from braid.passes.storage.box_candidates import Candidate
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.peak_check import PeakCheck, planned_peak
from braid.passes.storage.select_storage import candidates_in
from braid.passes.storage.storage_placement import StoragePlacement, seconds_as_stored
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.machines.load import load_target
from braid.universe import make_context


def _program(choices: list[tuple[str, int, int]]) -> str:
    """Concatenations, slices and paddings of what was made before, along rows."""
    rows, lines = [4], list[str]()

    def add(text: str, operands: list[int], extent: int) -> None:
        types = ", ".join(f"tensor<{rows[o]}x8xf32>" for o in operands)
        names = ", ".join(f"%v{o}" for o in operands)
        lines.append(
            f"%v{len(rows)} = braid.{text.replace('@', names)} : ({types}) "
            f"-> tensor<{extent}x8xf32>"
        )
        rows.append(extent)

    for kind, first, second in choices:
        a, b = first % len(rows), second % len(rows)
        if kind == "concat" and a != b:
            add("concat @ {dim = 0 : i64}", [a, b], rows[a] + rows[b])
        elif kind == "pad":
            edges = "low = array<i64: 1, 0>, high = array<i64: 2, 0>, value = 0.0 : f32"
            add(f"pad @ {{{edges}}}", [a], rows[a] + 3)
        elif kind == "slice" and rows[a] > 2:
            cut = f"offsets = array<i64: 1, 0>, sizes = array<i64: {rows[a] - 2}, 8>"
            add(f"slice @ {{{cut}, strides = array<i64: 1, 1>}}", [a], rows[a] - 2)
        else:
            add("exp @", [a], rows[a])
    last = len(rows) - 1
    body = "\n  ".join(lines)
    return (
        f"func.func @main(%v0: tensor<4x8xf32>) -> tensor<{rows[last]}x8xf32> {{\n  {body}\n"
        f"  func.return %v{last} : tensor<{rows[last]}x8xf32>\n}}"
    )


_KINDS = st.sampled_from(["concat", "pad", "slice", "exp", "exp"])
_CHOICES = st.lists(
    st.tuples(_KINDS, st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=14
)


@settings(max_examples=60, deadline=None)
@given(_CHOICES)
def test_each_decision_changes_the_peak_as_a_new_plan_says(
    choices: list[tuple[str, int, int]],
) -> None:
    module = parse_mlir(make_context(), _program(choices), "test.mlir").module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    memories = MemorySpaces(load_target("host"))
    candidates = candidates_in(function)
    check = PeakCheck(function, memories, 0)

    def accept(candidate: Candidate) -> bool:
        planned = planned_peak(function, memories)
        check.limit = planned - 1
        assert not check.accept(candidate)
        check.limit = planned
        assert check.accept(candidate)
        return True

    costs = DeviceCosts(load_target().default_backend, families=())
    placement = StoragePlacement(seconds_as_stored(costs))
    for candidate in candidates:
        placement.place(candidate, accept)
