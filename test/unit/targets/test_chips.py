"""The chips that ship: their units, memories and issue model, and what the loader refuses."""

from pathlib import Path

import pytest

from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.lowering.npu.lower_to_instructions import lower_module
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.errors import BraidError
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.load import load_target
from braid.universe import make_context


@pytest.mark.parametrize(
    ("name", "units", "first_memory"),
    [
        ("npu-small", ["load", "matrix", "vector", "store"], 2 << 20),
        ("npu-davinci", ["mte2", "mte1", "cube", "vector", "mte3"], 1 << 20),
    ],
)
def test_a_chip_has_units_in_the_order_of_data_flow(
    name: str, units: list[str], first_memory: int
) -> None:
    backend = load_target(name).default_backend
    assert [unit.name for unit in backend.units] == units
    assert backend.memories[0].bytes == first_memory
    assert backend.issue is not None
    ports = {port.name: port.bandwidth for port in backend.ports}
    for unit in backend.units:
        assert not unit.port or unit.rate <= ports[unit.port]


def test_each_unit_has_the_buffer_that_its_operands_are_in() -> None:
    davinci = load_target("npu-davinci").default_backend
    held = {unit.name: davinci.memory_of(unit) for unit in davinci.units}
    assert {name: memory.name for name, memory in held.items() if memory is not None} == {
        "mte2": "L1",
        "mte1": "L1",
        "cube": "L1",
        "vector": "UB",
        "mte3": "L1",
    }


UNIT = '[[backend.unit]]\nname = "u"\n'
MEMORY = '[[backend.memory]]\nname = "L1"\n'


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (UNIT + 'rate = 0\nresource = "load"', "'rate' is 0"),
        (UNIT + 'rate = 1\nresource = "load"\nport = "bus"', "there is no port 'bus'"),
        (UNIT + 'rate = 1\nresource = "vector"\nmemory = "UB"', "there is no memory 'UB'"),
        (UNIT + 'rate = 1\nresource = "load"\nspeed = 1', "unknown keys"),
        (MEMORY + "bytes = 0\nbandwidth = 1", r"memory\[0\]: 'bytes' is 0"),
    ],
)
def test_malformed_parts_of_a_chip(load_text, part: str, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        load_text(f'name = "chip"\n[[backend]]\nname = "npu"\n{part}\n')


CHIP = """
name = "toy"
[[backend]]
name = "npu"
operations = ["*"]
[[backend.unit]]
name = "in"
resource = "load"
rate = 1e9
[[backend.unit]]
name = "work"
resource = "vector"
rate = 1e9
[[backend.unit]]
name = "out"
resource = "store"
rate = 1e9
[[backend.port]]
name = "dram"
bandwidth = 1e9
[[backend.issue]]
instruction_bytes = 16
port = "dram"
[[backend.memory]]
name = "scratchpad"
bytes = 65536
bandwidth = 1e9
"""
LINK = '[[link]]\nsource = "npu:0"\ndestination = "DEST"\nbandwidth = 1e9\nlatency = 1e-6\n'
MODEL = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = braid.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = braid.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHIP + LINK.replace("DEST", "cpuu"), r"link\[0\]: there is no device 'cpuu'"),
        (CHIP.replace('"vector"', '"vektor"'), r"unit\[1\]: there is no kind of instruction 've"),
        (CHIP.replace('"load"', '"store"'), r"backend\[0\]: there is no unit for 'load'"),
        (CHIP.replace('["*"]', "{conv = 0}"), "a priority is 0; 1 is the best"),
        (CHIP.replace('["*"]', '{conv = "x"}'), "'conv' is 'x', expected a priority"),
        (CHIP.replace('["*"]', "{conv = {prio = 1}}"), "unknown keys .'prio'., expected"),
    ],
)
def test_mistakes_in_chips_are_refused(tmp_path: Path, load_text, text: str, message: str) -> None:
    with pytest.raises(BraidError, match=message) as raised:
        load_text(text)
    assert str(tmp_path / "toy.toml") in str(raised.value)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ('["braid.neg"]', "backend 'npu' does not run 'braid.exp'"),
        ('["braid.neg", "braid.expp"]', "'operations' of backend 'npu' names 'braid.expp'"),
    ],
)
def test_only_the_operations_of_a_backend_run(load_text, operations: str, message: str) -> None:
    target = load_text(CHIP.replace('["*"]', operations))
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    with pytest.raises(BraidError, match=message):
        lower_module(module, target.default_backend)


def test_all_operations_that_are_named_run(load_text) -> None:
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    whole = lower_module(module, load_text(CHIP).default_backend)
    named = CHIP.replace('["*"]', '["braid.neg", "braid.exp"]')
    assert lower_module(module, load_text(named, "named.toml").default_backend) == whole
    assert len(whole.instructions) > 2


def test_a_processor_without_instructions_has_no_stream() -> None:
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    with pytest.raises(BraidError, match="backend 'cpu' has no units that load and store"):
        lower_module(module, load_target("host").default_backend)


def test_groups_on_a_chip_take_what_its_units_do() -> None:
    """Its kernels are those of the host until it executes itself; their times are not its own."""
    text = """
!t = tensor<256x256xf32>
func.func @main(%x: !t, %w: !t) -> !t {
  %0 = braid.matmul %x, %w : (!t, !t) -> !t
  %1 = braid.exp %0 : (!t) -> !t
  func.return %1 : !t
}
"""
    context = make_context()
    module = parse_mlir(context, text, "test.mlir").module
    for pass_ in parse_pipeline("select-fusion,apply-fusion"):
        pass_.apply(context, module)
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    target = load_target("npu-small")
    chip = target.device("npu:0")
    cost = CostSource(target).cost(group, chip)
    matrix = 2 * 256**3 / 512e9
    moved = 2 * 256 * 256 * 4 / 8.5e9
    assert cost.source is Source.ROOFLINE
    assert max(matrix, moved) <= cost.seconds <= matrix + moved
    assert CostSource(target).cost(group, target.host_device).source is Source.FAMILY
