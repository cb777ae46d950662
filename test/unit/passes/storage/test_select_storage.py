"""The seconds that select-storage claims are what its decisions save on the whole function."""

from random import Random

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.storage.strided_storage import is_only_storage
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.passes.storage.select_storage import SelectStoragePass
from braid.passes.storage.storage_placement import clear_decision, seconds_as_stored
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.resolve import target_of
from braid.universe import make_context


def random_program(seed: int) -> str:
    """Elementwise ops, paddings and concatenations of one channel count, each value read often."""
    random = Random(seed)
    shapes: list[tuple[int, int, int]] = [(random.choice((4, 16)), random.choice((8, 60)), 32)]
    lines: list[str] = []

    def text(shape: tuple[int, int, int]) -> str:
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    for number in range(1, random.randint(4, 12)):
        operand = random.randrange(number)
        channels, rows, columns = shape = shapes[operand]
        match random.choice(("exp", "tanh", "pad", "concat")):
            case "pad":
                low, high = random.randint(0, 2), random.randint(0, 2)
                shapes.append((channels, rows + low + high, columns + low + high))
                lines.append(
                    f"  %{number} = braid.pad %{operand} {{low = array<i64: 0, {low}, {low}>, "
                    f"high = array<i64: 0, {high}, {high}>, value = 0.0 : f32}} : "
                    f"({text(shape)}) -> {text(shapes[-1])}"
                )
            case "concat":
                others = [i for i in range(number) if shapes[i][1:] == shape[1:]]
                other = random.choice(others)
                shapes.append((channels + shapes[other][0], rows, columns))
                lines.append(
                    f"  %{number} = braid.concat %{operand}, %{other} {{dim = 0 : i64}} : "
                    f"({text(shape)}, {text(shapes[other])}) -> {text(shapes[-1])}"
                )
            case name:
                shapes.append(shape)
                lines.append(
                    f"  %{number} = braid.{name} %{operand} : ({text(shape)}) -> {text(shape)}"
                )
    last = len(shapes) - 1
    head = f"func.func @f(%0: {text(shapes[0])}) -> {text(shapes[last])} {{"
    return "\n".join((head, *lines, f"  func.return %{last} : {text(shapes[last])}", "}"))


def predicted_seconds(module: ModuleOp) -> float:
    target = target_of(module, None)
    costs = CostSource(target).on(target.default_device)
    groups = [op for op in module.walk() if isinstance(op, FusedOp)]
    return sum(costs.cost(group).seconds for group in groups if not is_only_storage(group))


@pytest.mark.parametrize("seed", range(60))
def test_claimed_seconds_are_saved(seed: int) -> None:
    context = make_context()
    module = Parser(context, random_program(seed)).parse_module()
    with collect_remarks() as remarks:
        SelectStoragePass().apply(context, module)
    with_decisions = predicted_seconds(module)
    for op in module.walk():
        if isinstance(op, FusedOp):
            clear_decision(op)
    saved = predicted_seconds(module) - with_decisions
    assert remarks[0].data["seconds"] == pytest.approx(saved, rel=1e-9, abs=1e-15)
    assert remarks[0].data["spared"] == 0 or saved > 0


STRIDED_SOFTMAX = """
func.func @f(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %y = braid.fused(%x) {STRIDES} : (tensor<64x96xf32>) -> tensor<64x96xf32> {
  ^bb0(%a: tensor<64x96xf32>):
    %0 = braid.softmax %a {dim = 1 : i64} : (tensor<64x96xf32>) -> tensor<64x96xf32>
    braid.yield %0 : tensor<64x96xf32>
  }
  func.return %y : tensor<64x96xf32>
}
"""


@pytest.mark.parametrize("strides", [False, True])
def test_groups_keep_dense_tensors_that_their_only_family_wants(strides: bool) -> None:
    """The roofline, which is less than any kernel takes, does not count for generic loops."""
    text = "braid.strides = [array<i64: 192, 1>, unit]" if strides else ""
    module = Parser(make_context(), STRIDED_SOFTMAX.replace("STRIDES", text)).parse_module()
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    host = cpu_machine(NATIVE)
    costs = DeviceCosts.of_families((NormalizationFamily(host),), host)
    assert (seconds_as_stored(costs).of(group) is None) == strides
