"""Target descriptions: the shipped one loads, malformed ones name the file and the key."""

from pathlib import Path

import pytest

from braid.passes.order.assign_lanes import require_pool
from braid.support.errors import BraidError
from braid.targets.kernels.families import without_families
from braid.targets.machines.load import load_target

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


def test_the_host_runs_everything_and_its_families_load() -> None:
    (cpu,) = load_target("host").backends
    assert cpu.supports("braid.conv") and cpu.rate("flops") > 0 and cpu.rate("bytes") > 0
    assert all(hasattr(family, "accepts") for family in cpu.families())


def test_a_file_of_the_user(load_text) -> None:
    target = load_text(VALID)
    npu = target.backend("npu")
    assert npu.supports("braid.conv") and not npu.supports("braid.matmul")
    assert npu.rate("flops") == 2e9
    with pytest.raises(BraidError, match="no unit for 'bytes', only"):
        npu.rate("bytes")
    with pytest.raises(BraidError, match="no backend 'gpu', only 'npu'"):
        target.backend("gpu")


POOL = """
[[backend.pool]]
name = "core"
count = 4
efficiency = 0.5
"""


def test_a_pool_of_processors(tmp_path: Path, load_text) -> None:
    pool = load_text(VALID + POOL).backend("npu").pool
    assert pool is not None and pool.count == 4
    assert pool.seconds_on_all(5.0, 4) == 2.0
    assert load_target("npu-small").backends[0].pool is None
    assert require_pool(str(tmp_path / "toy.toml"), 4)[1] is pool
    with pytest.raises(BraidError, match="has 4 of 'core', not 5"):
        require_pool(str(tmp_path / "toy.toml"), 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "cannot read target"),
        ('name = "x"', r"no \[\[backend\]\]"),
        (VALID.replace('"toy"', "1"), "'name' is 1, expected str"),
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


def test_unknown_names() -> None:
    with pytest.raises(BraidError, match="no target 'abacus'"):
        load_target("abacus")


def test_a_family_that_cannot_be_imported(load_text) -> None:
    text = VALID.replace(
        "[[backend.unit]]", 'kernel_families = ["braid.nowhere:X"]\n[[backend.unit]]'
    )
    with pytest.raises(BraidError, match=r"cannot load kernel family 'braid\.nowhere:X'"):
        load_text(text).backends[0].families()


def test_families_can_be_left_out() -> None:
    cpu = load_target("host").backend("cpu")
    with without_families():
        assert cpu.families() == ()
    assert len(cpu.families()) > 1
