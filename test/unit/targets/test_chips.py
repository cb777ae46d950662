"""The chips that ship: their units, memories and issue model, and what the loader refuses."""

from pathlib import Path

import pytest

from braid.errors import BraidError
from braid.targets.target import load_target


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
    backend = load_target(name).backends[0]
    assert [unit.name for unit in backend.units] == units
    assert backend.memories[0].bytes == first_memory
    assert backend.issue is not None
    ports = {port.name: port.bandwidth for port in backend.ports}
    for unit in backend.units:
        assert not unit.port or unit.rate <= ports[unit.port]


def test_each_unit_has_the_buffer_that_its_operands_are_in() -> None:
    davinci = load_target("npu-davinci").backends[0]
    held = {unit.name: davinci.memory_of(unit) for unit in davinci.units}
    assert {name: memory.name for name, memory in held.items() if memory is not None} == {
        "mte2": "L1",
        "mte1": "L1",
        "cube": "L1",
        "vector": "UB",
        "mte3": "L1",
    }


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ('rate = 0\nresource = "load"', "'rate' is 0"),
        ('rate = 1\nresource = "load"\nport = "bus"', "there is no port 'bus'"),
        ('rate = 1\nresource = "vector"\nmemory = "UB"', "there is no memory 'UB'"),
        ('rate = 1\nresource = "load"\nspeed = 1', "unknown keys"),
    ],
)
def test_malformed_units(tmp_path: Path, unit: str, message: str) -> None:
    file = tmp_path / "chip.toml"
    file.write_text(
        f'name = "chip"\n[[backend]]\nname = "npu"\n[[backend.unit]]\nname = "u"\n{unit}\n'
    )
    with pytest.raises(BraidError, match=message):
        load_target(str(file))


def test_a_memory_has_bytes(tmp_path: Path) -> None:
    file = tmp_path / "chip.toml"
    memory = '[[backend.memory]]\nname = "L1"\nbytes = 0\nbandwidth = 1'
    file.write_text(f'name = "chip"\n[[backend]]\nname = "npu"\n{memory}\n')
    with pytest.raises(BraidError, match=r"memory\[0\]: 'bytes' is 0"):
        load_target(str(file))
