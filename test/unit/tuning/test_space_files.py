"""Spaces as data restrict, extend and replace what is searched; what does not hold is an error."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import braid
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support import entry_points
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tuning import space_files
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.model_classes import CLASSES, ModelClass, class_of, first_space
from braid.tuning.space_files import FamilySpace, check_spaces, find_space
from braid.universe import make_context
from test.unit.tuning.test_tune_kernels import MODEL, only_record, tune


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def written(path: Path, text: str, name: str = "space.toml") -> tuple[FamilySpace, ...]:
    (path / name).write_text(text)
    return find_space(str(path / name))


def task(spaces: Sequence[FamilySpace] = ()) -> KernelTask:
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index("select-schedules")
    run_pipeline(make_context(), module, passes[:place])
    (found,) = kernel_tasks(module, spaces=spaces)
    return found


def gemms(own: KernelTask, level: int) -> list[dict[str, int]]:
    return [dict(point.items) for point in own.space(level) if point.family == "gemm"]


def checked(spaces: Sequence[FamilySpace]) -> list[str]:
    own = task()
    families = ["gemm", "elementwise", "generic", "pool"]
    return [message for message, _ in check_spaces(spaces, families, own.matches)]


def test_restricted(tmp_path: Path) -> None:
    """All levels, but the default schedule stays."""
    rows = sorted({each["rows"] for level in range(3) for each in gemms(task(), level)})
    keep = rows[-1]
    spaces = written(tmp_path, f"[gemm]\nrows = [{keep}]\n")
    default, own = task().default[1], task(spaces)
    assert checked(spaces) == []
    for level in range(3):
        expected = [each for each in gemms(task(), level) if each["rows"] == keep]
        found = [each for each in gemms(own, level) if each != dict(default.items)]
        assert found == [each for each in expected if each != dict(default.items)]
    assert next(own.space(0)) == default


def test_extended_and_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that the family has in no level is searched, recorded, and compiled with."""
    text = (
        '[gemm]\nmode = "extend"\nlevel = 1\nunroll = [5]\nschedules = [{rows = 3, unroll = 7}]\n'
    )
    spaces = written(tmp_path, text)
    assert checked(spaces) == []
    own = task(spaces)
    before = [gemms(task(), level) for level in range(3)]
    after = [gemms(own, level) for level in range(3)]
    assert after[0] == before[0] and after[2] == before[2] and after[1][:-2] == before[1]
    default = dict(own.default[1].items)
    assert after[1][-2:] == [{**default, "rows": 3, "unroll": 7}, {**default, "unroll": 5}]
    spaces = written(tmp_path, '[gemm]\nmode = "replace"\nunroll = [5]\n')
    tune(monkeypatch, lambda n: 2.0 if n == 0 else 1.0, spaces=spaces, model_class=None)
    record = only_record()
    assert record.chosen == KernelSchedule.of("gemm", {**default, "unroll": 5})
    x, w = np.ones((24, 40), np.float32), np.ones((40, 48), np.float32)
    model = braid.compile(parse_mlir(make_context(), MODEL, "m.mlir").module, jobs=1)
    assert model.kernels.recorded == 1
    np.testing.assert_allclose(model(x, w), x @ w, rtol=1e-5)


def test_replaced_in_json(tmp_path: Path) -> None:
    spaces = written(tmp_path, '{"gemm": {"mode": "replace", "unroll": [5, 6]}}', "space.json")
    own = task(spaces)
    found = [gemms(own, level) for level in range(3)]
    assert [each["unroll"] for each in found[0][1:]] == [5, 6] and found[1:] == [[], []]


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("[gem]\nrows = [4]\n", "1:1", "no kernel family 'gem'", "did you mean 'gemm'?"),
        ("# a\n[gemm]\nrow = [4]\n", "3:1", "'gemm' have no 'row'", "did you mean 'rows'?"),
        ("[gemm]\nunroll = [999]\n", "2:1", "with unroll = 999", "its own space has unroll = "),
        (
            '[gemm]\nmode = "extend"\nschedules = [{rows = 99}]\n',
            "3:1",
            "with rows = 99",
            None,
        ),
        ('[gemm]\nmode = "extent"\n', "2:1", "expected one of restrict", "'extend'?"),
        ("[gemm]\nrows = 4\n", "2:1", "'rows' is 4, expected a list", None),
        ("[gemm]\nrows = [-4]\n", "2:1", "expected a list of whole numbers", None),
        ("[gemm]\nrows = [true]\n", "2:1", "expected a list of whole numbers", None),
        ('[gemm]\nmode = "extend"\nlevel = 3\n', "3:1", "expected 0 to 2", None),
        ("[gemm]\nlevel = 1\n", "2:1", "in a table that only restricts", 'mode = "extend"'),
        ('[gemm]\nmode = "extend"\nschedules = [4]\n', "3:1", "expected tables", None),
        ("gemm = 3\n", "1:1", "'gemm' is 3, expected a table", None),
        ("[pool]\ncolumns = [4]\n[gemm]\n", "3:1", "it says nothing", "rows = [4, 8]"),
        ('[gemm]\nmode = "extend"\n', "1:1", "it says nothing", None),
        (
            f'[gemm]\nmode = "extend"\nrows = {list(range(1000))}\nunroll = {list(range(101))}\n',
            "1:1",
            "these are 101,000 schedules, expected at most 100,000",
            "combined",
        ),
    ],
)
def test_errors(text: str, place: str, message: str, hint: str | None, tmp_path: Path) -> None:
    with pytest.raises(BraidError) as raised:
        checked(written(tmp_path, text))
    assert message in raised.value.message
    assert str(raised.value.location) == f"{tmp_path / 'space.toml'}:{place}"
    assert hint is None or hint in (raised.value.hint or "")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for text in ("[gemm\n", "[gemm]\nrows = [4]\nrows = [5]\n"):
        with pytest.raises(BraidError, match="cannot read the space"):
            written(tmp_path, text)
    for text in ('{"gemm": {"rows": [4]}, "gemm": {}}', '{"gemm": {"rows": [4], "rows": [5]}}'):
        with pytest.raises(BraidError, match="twice in one object"):
            written(tmp_path, text, "space.json")
    for text in ("[]", "{}"):
        with pytest.raises(BraidError, match="a table for each kernel family"):
            written(tmp_path, text, "space.json")
    with pytest.raises(BraidError, match="cannot read"):
        find_space(str(tmp_path / "none.toml"))


def test_large_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of schedules ask for the family's own space as often as one does."""
    own, asked = task(), list[int]()
    (gemm,) = (match for match in own.matches if match.family.name == "gemm")
    default, space = gemm.default_schedule(), type(gemm.candidate).space

    def counted(candidate: Any, level: int) -> Any:
        asked.append(level)
        return space(candidate, level)

    monkeypatch.setattr(type(gemm.candidate), "space", counted)
    counts = list[int]()
    for number in (1, 4000):
        schedules = [{**default, "unroll": 1 + n % 16} for n in range(number)]
        table = {"gemm": {"mode": "extend", "schedules": schedules}}
        spaces = written(tmp_path, json.dumps(table), "space.json")
        assert list(check_spaces(spaces, ["gemm"], own.matches)) == []
        counts.append(len(asked))
        asked.clear()
    assert counts[1] <= counts[0]


@pytest.mark.parametrize(
    ("name", "text"), [("s.toml", "[gemm]\nrows = [4]\n"), ("s.json", '{"gemm": {"rows": [4]}}')]
)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, name: str, text: str) -> None:
    with_mark = written(tmp_path, f"\ufeff{text}", name)
    assert with_mark == written(tmp_path, text, name)


def test_no_effect_is_said(tmp_path: Path) -> None:
    assert checked(written(tmp_path, "[pool]\ncolumns = [4]\n")) == [
        "no kernel of the model is made by 'pool'"
    ]


def test_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text("[gemm]\nrows = [4]\n")
    paths = {"mine": tmp_path / "mine.toml"}
    monkeypatch.setattr(space_files, "installed_path", lambda _, name: paths.get(name))
    monkeypatch.setattr(space_files, "installed_names", lambda _: tuple(paths))
    assert find_space("mine")[0].values == {"rows": (4,)}
    with pytest.raises(BraidError, match="installed packages have mine") as raised:
        find_space("mini")
    assert raised.value.hint == "did you mean 'mine'?"
    assert entry_points.installed_paths(space_files.SPACES_GROUP) == {}


@pytest.mark.parametrize("name", list(ModelClass))
def test_first_spaces_hold(name: ModelClass) -> None:
    """They name families and entries that there are, and add to level 0."""
    spaces = first_space(name)
    assert spaces and all(space.level == 0 and space.mode == "extend" for space in spaces)
    for space in spaces:
        known = {"conv-depthwise": {"columns", "vectors"}}.get(space.family)
        assert space.family in ("gemm", "conv-direct", "conv-depthwise")
        assert {*space.names} <= (known or {*task().default[1].schedule})
    own = gemms(task(spaces), 0)
    assert len(own) >= len(gemms(task(), 0))


LOOP = """
func.func @main(%n: index, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  {body}
}}
"""
PRODUCT = "braid.matmul {0}, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>"
IN_LOOP = f"""%y = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> (tensor<4x8xf32>) {{
    %b = {PRODUCT.format("%a")}
    scf.yield %b : tensor<4x8xf32>
  }}
  func.return %y : tensor<4x8xf32>"""
PLAIN = f"%y = {PRODUCT.format('%x')}\n  func.return %y : tensor<4x8xf32>"
ATTENTION = f"""%s = {PRODUCT.format("%x")}
  %y = braid.softmax %s {{dim = 1 : i64}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [(IN_LOOP, "rnn"), (PLAIN, "mlp"), (ATTENTION, "transformer")],
)
def test_the_class_follows_from_the_ops(body: str, expected: str) -> None:
    module = parse_mlir(make_context(), LOOP.format(body=body), "m.mlir").module
    assert class_of(module) == expected
    assert [class_of(module, name) for name in CLASSES] == [*ModelClass, expected]
    with pytest.raises(BraidError, match="no class of models 'rn'") as raised:
        class_of(module, "rn")
    assert raised.value.hint == "did you mean 'rnn'?"


def test_the_example_holds(tmp_path: Path) -> None:
    """The one in the docstring."""
    (text,) = (space_files.__doc__ or "").split("```toml\n")[1:]
    restricted, extended = written(tmp_path, text.split("```")[0])
    assert restricted.values == {"rows": (4, 8)} and extended.level == 1


def test_a_former_name_of_a_family(tmp_path: Path) -> None:
    (space,) = written(tmp_path, "[gemm-narrow]\nrows = [4]\n")
    assert space.family == "gemm-low-precision"
