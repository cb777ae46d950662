"""Target descriptions: the shipped one loads, malformed ones name the file and the key."""

import re
import tomllib
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.attribute_names import DEVICE, TARGET
from braid.dialects.braid.attributes import TargetAttr
from braid.frontends.mlir import parse_mlir
from braid.passes.order.assign_inter_op_streams import require_pool
from braid.support.errors import BraidError
from braid.support.settings import Kernels, Settings
from braid.targets.backends import kernel_families
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.machines import cpus
from braid.targets.machines.load import load_target, target_names
from braid.targets.machines.resolve import device_of, set_target, target_of
from braid.universe import make_context

VALID = """
name = "toy"
[[backend]]
name = "npu"
operations = ["braid.conv"]
[[backend.unit]]
name = "array"
resource = "flops"
rate = 2e9
"""


PORT = """[[backend.port]]
name = "p"
bandwidth = 0
"""


def test_the_host_runs_everything_and_its_families_load() -> None:
    (cpu,) = load_target("host").backends
    assert cpu.supports("braid.conv")
    assert all(hasattr(family, "match") for family in kernel_families(load_target().host_device))


def test_a_file_of_the_user(load_text) -> None:
    target = load_text(VALID)
    npu = target.backend("npu")
    assert npu.supports("braid.conv") and not npu.supports("braid.matmul")
    rates = DeviceRates(npu)
    assert rates.rate("flops") == rates.rate("flops", "i8") == 2e9
    with pytest.raises(BraidError, match="no unit for 'bytes', only"):
        rates.rate("bytes")
    with pytest.raises(BraidError, match="no backend 'gpu', only 'npu'"):
        target.backend("gpu")


POOL = """
[[backend.pool]]
name = "core"
count = 4
efficiency = 0.5
"""


def test_a_pool_of_processors(load_text) -> None:
    pool = load_text(VALID + POOL).backend("npu").pool
    assert pool is not None and pool.count == 4
    assert DeviceRates(load_text(VALID + POOL).backend("npu")).seconds_on_all(5.0, 4) == 2.0
    assert load_target("npu-small").default_backend.pool is None
    assert require_pool(load_text(VALID + POOL), 4)[1] == pool
    with pytest.raises(BraidError, match="has 4 of 'core', not 5"):
        require_pool(load_text(VALID + POOL), 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "cannot read target"),
        ('name = "x"', r"no \[\[backend\]\]"),
        (VALID.replace('"toy"', "1"), "'name' is 1, expected a string"),
        (VALID.replace('name = "toy"', ""), "target: there is no 'name', expected a string"),
        (VALID.replace('"toy"', '""'), "target: 'name' is '', expected a letter"),
        (VALID.replace('"toy"', r'"a\nb"'), "target: 'name' is 'a.*nb', expected a letter"),
        (VALID + VALID[VALID.index("[[backend]]") :], r"backend\[1\]: there already is a"),
        (VALID.replace("2e9", "1e-40"), "'rate' is 1e-40, expected a positive number"),
        (VALID + PORT, r"port\[0\]: 'bandwidth' is 0.0, expected a positive number"),
        (VALID.replace("2e9", '"fast"'), r"backend\[0\]\.unit\[0\]: 'rate' is 'fast'"),
        (VALID.replace("2e9", "-1"), "expected no negative number"),
        (VALID.replace("operations", "ops"), r"unknown keys \['ops'\]"),
        (VALID + POOL.replace("0.5", "1.5"), r"backend\[0\]\.pool\[0\]: 'efficiency' is 1.5"),
        (VALID + POOL + POOL, r"2 tables \[\[pool\]\], expected at most one"),
        (VALID.replace('["braid.conv"]', "[1]"), "expected a list of strings"),
    ],
)
def test_malformed_files(load_text, text: str, message: str) -> None:
    with pytest.raises(BraidError, match=message) as error:
        load_text(text)
    assert error.value.location is not None and error.value.location.file.endswith("toy.toml")


def test_what_is_no_file_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").mkdir()
    with pytest.raises(BraidError) as error:
        load_target(str(tmp_path / "toy.toml"))
    assert error.value.message == "cannot read target: it is a directory, expected a file"


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(VALID)
    module = ModuleOp([function := FuncOp("main", ((), ()))])
    set_target(module, str(path))
    assert target_of(function) is load_target(str(path))
    path.write_text(VALID.replace('"toy"', '"new"'))
    assert target_of(function).name == load_target(str(path)).name == "new"
    path.unlink()
    with pytest.raises(BraidError, match="there is no target"):
        target_of(function)


def test_unknown_names() -> None:
    with pytest.raises(BraidError, match="no target 'abacus'"):
        load_target("abacus")


@pytest.mark.parametrize("number", ["9" * 400, "nan", "inf", "-1", "1e40"])
def test_numbers_that_no_machine_has(load_text, number: str) -> None:
    text = VALID.replace("[[backend.unit]]", f"launch_seconds = {number}\n[[backend.unit]]", 1)
    with pytest.raises(BraidError, match="expected"):
        load_text(text)


def test_families_can_be_left_out() -> None:
    target = load_target("host")
    generic = target.with_settings(Settings(kernels=Kernels.GENERIC))
    assert kernel_families(generic.host_device) == ()
    assert len(kernel_families(target.host_device)) > 1


LINK = """[[link]]
source = "cpu:0"
destination = "npu:1"
bandwidth = 1
latency = 1
"""
DEVICES = """
[[device]]
name = "npu"
backend = "npu"
count = 2
machine = "dsp"
[[device.memory]]
name = "own"
bytes = 64
bandwidth = 1e9
[[machine]]
name = "dsp"
[machine.facts]
lanes = 4
[[device]]
name = "cpu:0"
backend = "npu"
machine = "haswell,+avxvnni"
[[link]]
source = "cpu:0"
destination = "npu:1"
bandwidth = 1e9
latency = 0
"""


def test_devices_machines_and_links(load_text) -> None:
    target = load_text(VALID + DEVICES)
    assert [device.name for device in target.devices] == ["npu:0", "npu:1", "cpu:0"]
    npu = target.device("npu:1")
    assert npu.machine.fact("lanes") == 4 and npu.machine.triple == ""
    assert target.backend_of(npu).memories[0].name == "own"
    assert target.host_device.name == "cpu:0" and target.default_device.name == "cpu:0"
    assert "avxvnni" in target.host_device.machine.enabled_features
    with pytest.raises(BraidError, match="no fact 'x', only"):
        npu.machine.fact("x")
    with pytest.raises(BraidError, match="no device 'gpu:0', only 'npu:0'"):
        target.device("gpu:0")


def test_a_file_without_devices_has_one_a_backend_and_the_host_of_host(load_text) -> None:
    target, host = load_text(VALID), load_target("host").host_device
    assert [device.name for device in target.devices] == ["npu:0", host.name]
    assert target.host_device == host and target.default_device.name == "npu:0"
    assert target.backend_of(host) == load_target("host").backend_of(host)
    chip = load_target("npu-small")
    assert chip.default_device.backend == "npu" and chip.host_device == host


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('destination = "npu:1"', 'destination = "npu:2"', r"link\[0\]: there is no device"),
        ('machine = "dsp"', 'machine = "asp"', r"device\[0\]: there is no CPU 'asp'"),
        ('name = "npu"\nbackend = "npu"', 'name = "npu"\nbackend = "gpu"', "no backend 'gpu'"),
        ('name = "npu"\nb', 'name = "npu:0"\nb', "'npu:0' has a number of its own"),
        ("+avxvnni", "avxvnni", "'avxvnni' of CPU .* is not a feature"),
        ('name = "cpu:0"', 'name = "npu:1"', r"devices \['npu:1'\] are described twice"),
        ("lanes = 4", "flops = 0", r"machine\[0\].facts: 'flops' is 0.0, expected a positive"),
        ("bytes = 64", f"bytes = {1 << 62}", r"memory\[0\]: 'bytes' is .*, and less than 1e\+18"),
        ("count = 2", "count = 0", r"device\[0\]: 'count' is 0, expected a positive number"),
        ("count = 2", "count = 1000000000", "'count' is 1000000000, expected at most 4096"),
        ('name = "npu"\nb', 'name = "n:p"\nb', "'name' is 'n:p', expected a letter"),
        ("bandwidth = 1e9\nlatency", "bandwidth = 0\nlatency", r"link\[0\]: 'bandwidth' is 0.0"),
        ('destination = "npu:1"', 'destination = "cpu:0"', r"link\[0\]: it leads from 'cpu:0' to"),
        ("[[link]]", LINK + "[[link]]", r"link\[1\]: there already is a link from 'cpu:0'"),
        ("[[machine]]", '[[machine]]\nname = "dsp"\n[[machine]]', r"there already is a \[\[mach"),
        ("lanes = 4", "thread_efficiency = 5", "'thread_efficiency' is 5.0, expected at most 1"),
        ("lanes = 4", 'lanes = "4"', r"machine\[0\].facts: 'lanes' is '4'"),
    ],
)
def test_malformed_devices(load_text, old: str, new: str, message: str) -> None:
    assert old in DEVICES
    with pytest.raises(BraidError, match=message):
        load_text(VALID + DEVICES.replace(old, new, 1))


def test_the_target_of_a_module_and_the_device_of_an_op() -> None:
    module = ModuleOp([function := FuncOp("main", ((), ()))])
    assert target_of(function) is load_target("host")
    set_target(module, "host", "haswell")
    target = target_of(function)
    assert target.host_device.machine.cpu == "haswell" and target is target_of(module, "host")
    assert target_of(module, "npu-small") is load_target("npu-small")
    assert device_of(function, target) is target.host_device
    chip = load_target("npu-small")
    assert device_of(function, chip).name == "npu:0"
    function.attributes[DEVICE] = StringAttr("cpu:0")
    assert device_of(function, chip) is chip.host_device
    module.attributes[TARGET] = TargetAttr.of("host", {"gpu": "x"})
    with pytest.raises(BraidError, match="unknown option 'gpu'"):
        target_of(module)


def test_an_unknown_device_says_where_it_is_named() -> None:
    text = 'func.func @f() attributes {braid.device = "npu:9"} {\n  return\n}'
    function = parse_mlir(make_context(), text, "f.mlir").module.body.block.first_op
    assert isinstance(function, FuncOp)
    with pytest.raises(BraidError, match="no device 'npu:9'") as error:
        device_of(function.body.block.first_op, load_target("npu-small"))
    assert error.value.location is not None and error.value.location.line == 1


def test_every_target_by_name_can_be_loaded() -> None:
    assert {"host", "host-2", "npu-small", "npu-davinci"} <= target_names()
    assert all(load_target(name).backends for name in target_names())


def tables_of_runtime() -> dict[str, set[str]]:
    """By architecture, the features that the runtime can check."""
    sources = Path(__file__).parents[3] / "runtime" / "native" / "src"
    return {
        name: set(re.findall(r'\{"([\w.-]+)",', (sources / f"cpu_features_{file}.c").read_text()))
        for name, file in (("x86_64", "x86"), ("aarch64", "aarch64"))
    }


def test_features_are_those_that_the_runtime_can_check() -> None:
    file = Path(cpus.__file__).parent / "facts" / "features.toml"
    entries = tomllib.loads(file.read_text())["architecture"]
    for architecture, checked in tables_of_runtime().items():
        (entry,) = (entry for entry in entries if architecture in entry["names"])
        selected, asked = set(entry["selected"]), set(entry["asked"])
        assert selected | asked == checked and not selected & asked
    for name in cpus.cpu_names():
        machine = cpus.cpu_machine(name)
        assert {*machine.enabled_features} <= tables_of_runtime()[machine.architecture]


def test_code_needs_the_features_that_it_can_use() -> None:
    needed = cpus.needed_features(cpus.cpu_machine("znver4"))
    assert {"avx512bf16", "fma", "sse4a"} <= {*needed} and not {"clzero", "rdpru"} & {*needed}
    known = cpus.known_features("x86_64-linux", {"sgx": True, "avx": True, "fma": False})
    assert known == "+avx,-fma,-sgx"
    for text in ("haswell,+foo", "neoverse-n1,+avx", "native,-foo"):
        with pytest.raises(BraidError, match=r"there is no feature '(foo|avx)' of CPU"):
            cpus.cpu_machine(text)
