"""The way of one cost through the files of `targets/`, as `docs/architecture.md` shows it."""

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.targets.costs.cost import Cost, Source
from braid.targets.costs.cost_records import append_records
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.costs.probe_records import Probe, device_scope, keep_probes
from braid.targets.costs.schedule_records import TunedKernel, append_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.keys import choice_key, record_key
from braid.targets.machines.load import load_target
from braid.universe import make_context

HOST = load_target("host")
ROOT = Path(braid.__file__).resolve().parents[1]
MOST_FILES = 8
Call = tuple[str, str]
"""The file of a function of `targets/`, and its qualified name."""

CONV = """
func.func @main(%x: tensor<1x16x14x14xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x12x12xf32> {
  %0 = braid.fused(%x, %w) :
      (tensor<1x16x14x14xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x12x12xf32> {
  ^bb0(%a: tensor<1x16x14x14xf32>, %b: tensor<16x16x3x3xf32>):
    %1 = braid.conv %a, %b {strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
      pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} :
      (tensor<1x16x14x14xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x12x12xf32>
    braid.yield %1 : tensor<1x16x12x12xf32>
  }
  func.return %0 : tensor<1x16x12x12xf32>
}
"""


def conv() -> tuple[ModuleOp, FusedOp]:
    module = parse_mlir(make_context(), CONV, "conv.mlir").module
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    return module, group


@cache
def file_of(filename: str) -> str:
    """Return the path in the repository; empty for files that are not braid's."""
    path = Path(filename).resolve()
    is_own = path.is_relative_to(ROOT) and "site-packages" not in path.parts
    return str(path.relative_to(ROOT)) if is_own else ""


def is_of_family(frame: FrameType | None) -> bool:
    """Whether a family computes: its classes are in `lowering/`, on the base in one file."""
    while frame is not None:
        file = file_of(frame.f_code.co_filename)
        if file.startswith("lowering/") or file == "targets/kernels/kernel_family.py":
            return True
        frame = frame.f_back
    return False


def calls_in_targets(ask: Callable[[], Cost]) -> tuple[Cost, list[Call]]:
    """Each function that is called, once, in the order in which it is called first."""
    calls: dict[Call, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        file, name = file_of(frame.f_code.co_filename), frame.f_code.co_qualname
        is_named = event == "call" and not name.endswith(">")  # no comprehension
        if is_named and file.startswith("targets/") and not is_of_family(frame):
            calls[file, name] = None

    sys.setprofile(note)
    try:
        cost = ask()
    finally:
        sys.setprofile(None)
    return cost, list(calls)


def climbs(calls: Sequence[Call]) -> list[Call]:
    """Functions that stand in a file which was left before: who reads the way turns back."""
    left, last, found = set[str](), "", list[Call]()
    for file, name in calls:
        if file != last:
            left.add(last)
            if file in left:
                found.append((file, name))
        last = file
    return found


def shown() -> list[str]:
    """Return the files of the table, in its order."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## One kernel's seconds\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(targets/\S+\.py)`", section, re.M)


@pytest.fixture(autouse=True)
def no_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def record_everything(costs: DeviceCosts, group: FusedOp) -> None:
    """Return a measured kernel, a schedule of it, and a probe of another group of its kind."""
    first, *_ = costs.kernels.options(group)
    made = first.match.family
    append_records({record_key(group, first.layouts, made): 1e-5}, {})
    schedule = KernelSchedule.of(made.name, first.match.default_schedule())
    tuned = TunedKernel(schedule, made.version, 0.5, 1.0)
    append_tuned(choice_key(group, first.layouts, costs.machine), tuned)
    scope = device_scope(HOST.backend_of(HOST.host_device), of_op=False)
    kinds = costs.kinds(group)
    probe = Probe("another", "conv", "braid.conv", "f32", False, 5, 0, 2e-4, 0.0, 1e-4, kinds)
    keep_probes(scope, [probe])


def test_a_cost_goes_down_the_files_of_the_table() -> None:
    assert 0 < len(shown()) <= MOST_FILES
    _module, group = conv()
    costs = CostSource(HOST).on(HOST.host_device)
    cost, plain = calls_in_targets(lambda: costs.cost(group))
    assert cost.source is Source.FAMILY
    record_everything(costs, group)
    costs = CostSource(HOST).on(HOST.host_device)
    choice = costs.kernels.options(group)[-1].layouts  # predicted, beside one that was measured
    cost, recorded = calls_in_targets(lambda: costs.cost(group, choice))
    assert cost.source is Source.CORRECTED
    for calls in (plain, recorded):
        files = list(dict.fromkeys(file for file, _ in calls))
        assert files == [file for file in shown() if file in files]
        assert climbs(calls) == []
    assert {file for file, _ in recorded} == set(shown())


def test_equal_groups_are_asked_once() -> None:
    """The one memo: what was said of a group holds for those that equal it."""
    _module, group = conv()
    costs = CostSource(HOST).on(HOST.host_device)
    first, calls = calls_in_targets(lambda: costs.cost(group))
    again, known = calls_in_targets(lambda: costs.cost(group))
    assert again == first
    assert {file for file, _ in known} == set(shown()[:2]) < {file for file, _ in calls}


def test_climbs_are_found() -> None:
    assert climbs([("a", "f"), ("a", "g"), ("b", "f"), ("c", "f")]) == []
    assert climbs([("a", "f"), ("b", "f"), ("a", "g"), ("c", "f"), ("b", "h")]) == [
        ("a", "g"),
        ("b", "h"),
    ]
