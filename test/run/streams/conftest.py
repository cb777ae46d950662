"""Models for streams: chains over devices, and a plugin whose device is late and fails."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
import braid.targets.machines
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.c_programs import PLUGIN, build

SIZE = 64
FIRST, SECOND = "cpu:0", "cpu:1"


@pytest.fixture(scope="package", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def parse(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "stream.mlir").module


def chain(*devices: str, beside: bool = True) -> str:
    """Ops in a row on `devices`; with `beside`, the last reads the first's result too.

    Devices that take turns are joined by `+`.
    """
    lines: list[str] = []
    value = "%x"
    for number, device in enumerate(devices):
        second = "%v0" if beside and number == len(devices) - 1 and number > 1 else "%x"
        lines.append(
            f"  %v{number} = braid.{'sub' if number % 2 else 'add'} {value}, {second} "
            f"{{{placed(device)}}} : (!t, !t) -> !t"
        )
        value = f"%v{number}"
    return "\n".join(
        [
            f"!t = tensor<{SIZE}xf32>",
            'func.func @main(%x: !t {braid.name = "x"}) -> (!t {braid.name = "y"}) {',
            *lines,
            f"  func.return {value} : !t",
            "}",
        ]
    )


def placed(device: str) -> str:
    """Return the attributes of an op on devices that are joined by `+`."""
    own, *replicas = device.split("+")
    names = ", ".join(f'"{name}"' for name in replicas)
    return f'braid.device = "{own}"' + (f", braid.replicas = [{names}]" if replicas else "")


def inputs(count: int) -> list[np.ndarray]:
    """Arrays of which each tells its number."""
    steps = np.linspace(0, 1, SIZE, dtype=np.float32)
    return [steps + number for number in range(count)]


@pytest.fixture(scope="package")
def two_cores() -> braid.Model:
    return braid.compile(parse(chain(FIRST, SECOND, FIRST, SECOND)), target="host-2")


@pytest.fixture(scope="package")
def faulty_target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the target host-2, whose second core the plugin runs, with a third device of that
    kind."""
    directory = tmp_path_factory.mktemp("faulty")
    source = Path(__file__).with_name("faulty_plugin.c")
    build(directory / "libbraid_device_faulty.so", source, flags=PLUGIN)
    text = Path(braid.targets.machines.__file__).with_name("host-2.toml").read_text()
    device = 'name = "{}"\nbackend = "cpu"\nplugin = "{}"\nmachine = "native"\n'
    names = {"cpu:0": "core", "cpu:1": "faulty", "cpu:2": "faulty"}
    both = "\n[[device]]\n".join(device.format(*each) for each in names.items())
    text = text.replace(device.format("cpu", "core") + "count = 2\n", both)
    path = directory / "faulty.toml"
    path.write_text(text)
    return str(path)


@pytest.fixture
def faulty(faulty_target: str, monkeypatch: pytest.MonkeyPatch) -> braid.Model:
    """Return a chain over both cores; the plugin runs three of its launches."""
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(Path(faulty_target).parent))
    text = chain(SECOND, FIRST, SECOND, FIRST, SECOND)
    return braid.compile(parse(text), target=faulty_target)
