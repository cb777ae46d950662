"""Ops are tried on devices, some of which crash or hang, and assigned by the results."""

import shutil
import subprocess
from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr

import braid.targets.machines
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.dialects.braid.attribute_names import DEVICE
from braid.frontends.mlir import parse_mlir
from braid.passes.partition.assign_devices import AssignDevicesPass
from braid.runtime.native_abi import find_headers
from braid.support.records.record_store import default_store
from braid.targets.costs.probe_records import PROBE
from braid.tools.cli import main
from braid.tuning.probe import DeviceReport, Limits, probe_model
from braid.universe import make_context

MODEL = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %w = braid.parameter {key = "w"} : tensor<64x64xf32>
  %0 = braid.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.exp %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = braid.matmul %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %2 : tensor<64x64xf32>
}
"""
BEHAVIOURS = {"slow": "", "crashing": "abort()", "hanging": "sleep(1000)"}
LIMITS = Limits(op=20.0, model=60.0, op_timed=0.01, model_timed=0.05)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a plugin for each behaviour."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    directory = tmp_path_factory.mktemp("plugins")
    source = Path(__file__).with_name("trying_plugin.c")
    flags = ["-std=c11", "-Wall", "-shared", "-fPIC", f"-I{find_headers()}"]
    for name, what in BEHAVIOURS.items():
        own = [f'-DNAME="{name}"', f"-DON_SUBMIT={what or '(void)0'}"]
        library = directory / f"libbraid_device_{name}.so"
        subprocess.run([compiler, *flags, *own, source, "-o", library], check=True)
    return directory


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


def chip(directory: Path, plugin: str, operations: str = '["*"]') -> str:
    """Return the path of a target whose chip runs on that plugin."""
    text = Path(braid.targets.machines.__file__).with_name("npu-small.toml").read_text()
    assert 'operations = ["*"]\npriority = 1\n' in text
    text = text.replace("npu-sim", plugin).replace("npu-small", plugin)
    text = text.replace('operations = ["*"]\npriority = 1\n', f"operations = {operations}\n", 1)
    path = directory / f"{plugin}.toml"
    path.write_text(text)
    return str(path)


def devices(target: str) -> list[str]:
    """Where the ops of the model are then, in order."""
    context = make_context()
    module = parse_mlir(context, MODEL, "model.mlir").module
    with collect_remarks():
        AssignDevicesPass(target=target).apply(context, module)
    found = [op.attributes.get(DEVICE) for op in module.walk() if op.name in KINDS]
    return [device.data if isinstance(device, StringAttr) else "" for device in found]


KINDS = ("braid.matmul", "braid.exp")


def test_what_crashes_is_not_supported(plugins, model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    target = chip(tmp_path, "crashing")
    assert devices(target) == [""] * 3  # all on the chip, the default device
    chip_report, host = probe_model(model, target=target, limits=LIMITS)
    assert (chip_report.device, chip_report.ops) == ("npu:0", 2)
    assert set(chip_report.failures.values()) == {"opened (it ended by SIGABRT)"}
    assert (host.device, host.ops, host.failures) == ("cpu:0", 2, {}) and host.groups
    assert devices(target) == ["cpu:0"] * 3
    assert main(["targets", "show", target]) == 0
    shown = capsys.readouterr().out
    for text in ("braid.matmul f32", "braid.exp f32", "it ended by SIGABRT", "1 of 1 runs"):
        assert text in shown, shown


def test_what_hangs_is_ended(plugins, model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    target = chip(tmp_path, "hanging")
    limits = Limits(op=8.0, model=60.0, op_timed=0.01, model_timed=0.05)
    chip_report, host = probe_model(model, target=target, limits=limits)
    assert set(chip_report.failures.values()) == {"it did not end within 8 s"}
    assert not host.failures


def test_a_list_that_names_an_op_wins(plugins, model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    target = chip(tmp_path, "crashing", '{matmul = 1, "*" = 2}')
    probe_model(model, target=target, limits=LIMITS)
    assert devices(target) == ["npu:0", "cpu:0", "npu:0"]


def test_priority_follows_speed_unless_it_is_given(plugins, model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    target = chip(tmp_path, "slow")
    assert devices(target) == [""] * 3
    reports = probe_model(model, target=target, limits=LIMITS)
    assert [report.failures for report in reports] == [{}, {}]
    rows = [row for row in default_store().read(PROBE).values() if row["of_op"]]
    assert sorted(row["seconds"] > 0.9 for row in rows) == [False, False, True, True]
    assert devices(target) == ["cpu:0"] * 3
    assert devices(chip(tmp_path, "slow", '{matmul = 1, "*" = 2}')) == ["npu:0", "cpu:0", "npu:0"]
    target = chip(tmp_path, "slow")
    again = probe_model(model, target=target, limits=LIMITS)
    assert [(report.ops, report.known) for report in again] == [(0, 2), (0, 2)]


def test_a_device_that_is_missing_is_not_tried(model, tmp_path) -> None:
    missing, host = probe_model(model, target=chip(tmp_path, "nowhere"), limits=LIMITS)
    assert "nowhere" in missing.absent and not missing.ops
    assert host.ops == 2
    assert "is not here" in missing.describe()


def test_the_model_as_a_whole_corrects_costs(model) -> None:
    (report,) = probe_model(model, target="host", limits=LIMITS)
    assert report.groups == 3 or report.groups == 2
    module = parse_mlir(make_context(), MODEL, "model.mlir").module
    with collect_remarks() as remarks:
        AssignDevicesPass(target="host-2", strategy="latency").apply(make_context(), module)
    (said,) = (remark for remark in remarks if "cost" in remark.data)
    assert "measured" in str(said.data["sources"]) or "corrected" in str(said.data["sources"])


def test_reports_say_what_failed() -> None:
    report = DeviceReport("npu:0", ops=3, failures={"braid.conv": "it ended by SIGSEGV"})
    assert report.describe().splitlines()[1].strip() == "braid.conv: it ended by SIGSEGV"
