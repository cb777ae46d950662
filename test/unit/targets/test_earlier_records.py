"""Records that an earlier braid wrote, at commit 65bc2b4d, are found, with the same schedules.

`earlier_records/records.sqlite` has one of each kernel family of each backend that records
schedules, for CPUs and targets by name, as that version's `append_tuned` wrote it.
`earlier_records/groups.mlir` are the kernels, as it printed them: what it chose stands in
`test.expected`. Whoever changes what keys are made of, or how schedules are written, changes the
code so that these are still found, and not the files.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner
from xdsl.dialects.builtin import Attribute, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.parser import Parser

from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.records.record_store import Fields, default_store, reading
from braid.targets.costs.schedule_records import SCHEDULE_KIND
from braid.targets.kernels.family_names import current_name
from braid.targets.kernels.kernel_schedule import KernelSchedule, schedule_of
from braid.targets.kernels.keys import GroupKey, KernelKey
from braid.tools.app import app
from braid.tuning.record_check import family_versions
from braid.universe import make_context
from test.machines import AVX2

EARLIER = Path(__file__).parent / "earlier_records"
EXPECTED = "test.expected"
LATER_FAMILIES = {"fft", "fold", "non-max-suppression", "trees"}
PASSES = "select-schedules,select-stream-schedules"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the earlier store, copied since readers of SQLite write files next to it."""
    path = tmp_path / "records.sqlite"
    shutil.copyfile(EARLIER / "records.sqlite", path)
    monkeypatch.setenv("BRAID_RECORDS", f"sqlite:///{path}")
    return path


@dataclass(frozen=True)
class Kernel:
    """What an op is to get, and what it got."""

    label: str
    expected: Attribute
    found: Attribute | None


def kernels() -> Iterator[Kernel]:
    """Run the passes that look schedules up, on every module."""
    context = make_context()
    for text in (EARLIER / "groups.mlir").read_text().split("// -----\n"):
        module = Parser(context, text).parse_module()
        expected = dict(_expected(module))
        assert expected
        run_pipeline(context, module, PASSES)
        label = text.partition("\n")[0]
        yield from (Kernel(label, own, op.attributes.get(SCHEDULE)) for op, own in expected.items())


def _expected(module: ModuleOp) -> Iterator[tuple[Operation, Attribute]]:
    for op in module.walk():
        if EXPECTED in op.attributes:
            chosen = op.attributes.pop(EXPECTED)
            assert isinstance(chosen, DictionaryAttr)
            family = StringAttr(current_name(chosen.data["family"].data))
            yield op, DictionaryAttr({**chosen.data, "family": family})


def as_of_now(value: Fields) -> Fields:
    """Return a record as if its family had made the same code since."""
    (version,) = family_versions()[current_name(value["family"])]
    return {**value, "version": version}


def test_records_are_found_with_the_same_schedules() -> None:
    rows = default_store().read(SCHEDULE_KIND)
    with reading({SCHEDULE_KIND: {key: as_of_now(value) for key, value in rows.items()}}):
        found = list(kernels())
    assert len(found) > 40
    assert [kernel for kernel in found if kernel.found != kernel.expected] == []


def test_every_family_of_braid_has_one() -> None:
    recorded = {value["family"] for value in default_store().read(SCHEDULE_KIND).values()}
    assert {"conv-narrow", "gemm-narrow"} < recorded  # these have other names now
    assert set(map(current_name, recorded)) == set(family_versions()) - LATER_FAMILIES


def test_those_of_other_versions_are_listed() -> None:
    versions = family_versions()
    older = [
        f"schedule {value['what']}: kernel family '{current_name(value['family'])}' has version"
        for value in default_store().read(SCHEDULE_KIND).values()
        if value["version"] not in versions[current_name(value["family"])]
    ]
    result = CliRunner().invoke(app, ["records", "check"])
    assert result.exit_code == 1 and older
    lines = result.output.splitlines()
    assert sorted(line.split(" has version")[0] + " has version" for line in lines) == sorted(older)


def test_a_schedule_in_a_module_may_have_a_former_name_of_its_family() -> None:
    chosen = {"family": StringAttr("conv-narrow"), "schedule": DictionaryAttr({})}
    op = ModuleOp([], {SCHEDULE: DictionaryAttr(chosen)})
    assert schedule_of(op) == KernelSchedule("conv-low-precision", ())


def test_digests_have_former_names_of_families() -> None:
    key, group = GroupKey("stored", "machine"), FusedOp([], [], Block([YieldOp()]))
    for name, expected in (("conv-low-precision", "conv-narrow"), ("gemm", "gemm")):
        family = ElementwiseFamily(AVX2, name=name)
        found = KernelKey.of(group, key, family)
        assert found == KernelKey(key, expected, family.version)
