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


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ('rate = 0\nresource = "load"', "'rate' is 0"),
        ('rate = 1\nresource = "load"\nport = "bus"', "there is no port 'bus'"),
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
