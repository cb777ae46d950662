"""What was measured of this machine: kept, found again, and believed before what is shipped."""

import math
import sqlite3
from pathlib import Path

import pytest

from braid.support.cache_files import RECORDS, cache_directory
from braid.support.records.record_store import Record, default_store
from braid.targets.backends import kernel_families
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines import calibration, identity
from braid.targets.machines.calibration import (
    CALIBRATION,
    Calibration,
    calibrated,
    calibration_key,
    flops_fact,
    keep_calibration,
    load_calibration,
)
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.figures import figures_of
from braid.targets.machines.load import load_target
from braid.targets.machines.resolve import resolve_target

HOST = cpu_machine(NATIVE)
FACTS = {
    "flops": 7e9,
    "flops_f64": 3e9,
    "memory_bandwidth": 5e9,
    "launch_seconds": 2e-6,
    "join_seconds": 8e-6,
    "thread_efficiency": 0.5,
}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    return cache_directory() / RECORDS


def keep(facts: object) -> None:
    default_store().append([Record(CALIBRATION, calibration_key(HOST), {"facts": facts})])


def test_costs_are_made_of_what_was_measured() -> None:
    host = load_target()
    shipped = CostSource(host).on(host.host_device)
    before = shipped.rate("flops")
    assert shipped.rate("flops", "f64") == before == HOST.fact("flops")
    keep_calibration(HOST, Calibration(FACTS, {"flops": "a test"}))
    measured = CostSource(host).on(host.host_device)
    assert (measured.rate("flops"), measured.rate("flops", "f64")) == (7e9, 3e9)
    assert measured.rate("flops", "i8") == 7e9
    assert measured.rate("bytes") == 5e9
    assert measured.launch_seconds == 2e-6
    assert measured.seconds_on_all(4e-6, 3) == 8e-6 + 2e-6
    assert measured.roofline_seconds({"flops": 6e9}, "f64") == 2.0
    assert measured.machine.fact("cached_bandwidth") == HOST.fact("cached_bandwidth")


def test_families_predict_by_what_was_measured() -> None:
    device = load_target().host_device
    before = kernel_families(device)
    assert kernel_families(device) is before
    keep_calibration(HOST, Calibration(FACTS, {}))
    machines = {getattr(family, "machine", device.machine) for family in kernel_families(device)}
    assert machines == {device.machine} and device.machine.fact("flops") == 7e9


def test_other_machines_are_as_shipped() -> None:
    keep_calibration(HOST, Calibration(FACTS, {}))
    for name in ("haswell", "x86-64-v3,+avxvnni"):
        assert resolve_target("host", {"cpu": name}).host_device.machine == cpu_machine(name)
    assert resolve_target("host", {"cpu": NATIVE}).host_device.machine == calibrated(HOST)
    assert load_target("npu-small").host_device.machine.fact("flops") == 7e9
    assert load_target("npu-small").default_device.machine.facts == ()


def test_the_last_one_counts() -> None:
    for flops in (1e9, 2e9):
        keep_calibration(HOST, Calibration({"flops": flops}, {}))
    assert calibrated(HOST).fact("flops") == 2e9


@pytest.mark.parametrize(
    "facts",
    [
        None,
        {},
        [1.0],
        "fast",
        {"flops": "fast"},
        {"flops": True},
        {"flops": 0.0},
        {"flops": -1e9},
        {"flops": 1e30},
        {"memory_bandwidth": 1e10, "launch_seconds": -1e-9},
        {"launch_seconds": 7200.0},
        {"thread_efficiency": 1.5},
        {"cache_bytes": 1e6},
    ],
)
def test_what_is_not_a_calibration_is_a_miss(facts: object) -> None:
    keep_calibration(HOST, Calibration(FACTS, {}))
    assert load_calibration(HOST) is not None
    keep(facts)
    assert load_calibration(HOST) is None and calibrated(HOST) is HOST


def test_no_record_holds_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        keep_calibration(HOST, Calibration({"flops": math.nan}, {}))


@pytest.mark.parametrize("other", ["processor", "cores", "toolchain", "version"])
def test_a_record_of_something_else_is_a_miss(other: str, monkeypatch) -> None:
    keep_calibration(HOST, Calibration(FACTS, {}))
    if other == "processor":
        monkeypatch.setattr(identity, "processor", lambda: "model name: another one")
    elif other == "cores":
        monkeypatch.setattr(calibration, "core_count", lambda: 999)
    elif other == "toolchain":
        monkeypatch.setattr(calibration, "toolchain", lambda: ("llvmlite 99",))
    else:
        monkeypatch.setattr(calibration, "VERSION", 99)
    assert load_calibration(HOST) is None and calibrated(HOST) is HOST


def test_a_damaged_record_is_a_miss(store: Path, capsys) -> None:
    keep_calibration(HOST, Calibration(FACTS, {}))
    with sqlite3.connect(store) as database:
        database.execute("UPDATE records SET value = replace(value, '7000000000.0', '9.0')")
    assert load_calibration(HOST) is None
    store.write_bytes(b"SQLite format 3\0 and then nothing")
    assert load_calibration(HOST) is None


def test_figures_stand_beside_each_other() -> None:
    host = load_target()
    keep_calibration(HOST, Calibration(FACTS, {"flops": "a test"}))
    figures = {figure.name: figure for figure in figures_of(host.host_device, host)}
    flops = figures["flops"]
    assert (flops.shipped, flops.measured, flops.value) == (HOST.fact("flops"), 7e9, 7e9)
    assert flops.origin.startswith("vectors.toml, ") and flops.detail == "a test"
    assert figures["flops_f64"].shipped is None and figures["flops_f64"].value == 3e9
    cached = figures["cached_bandwidth"]
    assert cached.measured is None and cached.value == HOST.fact("cached_bandwidth")
    assert figures["launch_seconds"].origin == "vectors.toml, core"
    assert figures["launch_seconds"].value == 2e-6


def test_what_a_file_says_itself_counts(load_text) -> None:
    keep_calibration(HOST, Calibration(FACTS, {}))
    target = load_text(
        """
        name = "board"
        host = "cpu:0"
        [[device]]
        name = "cpu:0"
        backend = "cpu"
        machine = "native"
        [[backend]]
        name = "cpu"
        operations = ["*"]
        launch_seconds = 7e-6
        [[backend.unit]]
        name = "vector"
        resource = "flops"
        rate = 5e9
        [[backend.unit]]
        name = "bus"
        resource = "bytes"
        [[backend.pool]]
        name = "thread"
        join_seconds = 1e-6
        """
    )
    costs = CostSource(target).on(target.host_device)
    assert (costs.launch_seconds, costs.rate("flops"), costs.rate("bytes")) == (7e-6, 5e9, 5e9)
    assert costs.seconds_on_all(3.0, 3) == 1e-6 + 3.0 / 2
    figures = {figure.name: figure for figure in figures_of(target.host_device, target)}
    assert figures["launch_seconds"].value == 7e-6 and figures["join_seconds"].value == 1e-6
    assert figures["launch_seconds"].origin == "target 'board'"


@pytest.mark.parametrize(
    ("cpu", "fact", "origin"),
    [
        ("haswell", "cache_bytes", "cpus.toml, haswell"),
        ("graniterapids", "cache_bytes", "cpus.toml, graniterapids"),
        ("neoverse-v2", "cache_bytes", "cpus.toml, neoverse-v2"),
        ("x86-64-v3", "cache_bytes", "vectors.toml, core"),
        ("haswell,-avx2", "cache_bytes", "cpus.toml, haswell"),
        ("haswell,-avx2", "flops", "vectors.toml, sse"),
        ("znver5", "flops", "vectors.toml, avx512"),
        ("neoverse-n1", "vector_bytes", "vectors.toml, neon"),
    ],
)
def test_facts_say_where_they_are_from(cpu: str, fact: str, origin: str) -> None:
    target = resolve_target("host", {"cpu": cpu})
    figures = {figure.name: figure for figure in figures_of(target.host_device, target)}
    assert figures[fact].origin == origin


def test_facts_of_f32_have_no_type_in_their_name() -> None:
    assert (flops_fact("f32"), flops_fact("i8")) == ("flops", "flops_i8")
