"""What installed packages add is looked up once in a process, however often it is asked for."""

import importlib.metadata
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from braid.support import entry_points as module
from braid.support.errors import BraidError
from braid.targets.backends import backend_names
from braid.targets.machines.load import load_target


@pytest.mark.parametrize(
    "ask",
    [
        backend_names,
        module.installed_tables,
        module.family_backends,
        lambda: module.installed_paths(module.TARGETS_GROUP),
    ],
)
def test_entry_points_are_read_once(
    ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading them takes milliseconds, and graphs have thousands of ops that ask."""
    first = ask()

    def read(**_: str) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(importlib.metadata, "entry_points", read)
    assert ask() == first


def test_groups_share_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = list[importlib.metadata.EntryPoints]()
    read = importlib.metadata.entry_points

    def counted() -> importlib.metadata.EntryPoints:
        readings.append(read())
        return readings[-1]

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    module.all_entry_points.cache_clear()
    assert {entry.name for entry in module.entry_points_of(module.BACKENDS_GROUP)} >= {"cpu", "gpu"}
    assert not module.entry_points_of("braid.of_nobody")
    assert len(readings) == 1


def clear() -> None:
    module.installed_names.cache_clear()
    module.installed_path.cache_clear()


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Callable[[str, str], None]]:
    """Add an entry point of the group `braid.spaces`, of a module with this text."""
    entries = list[importlib.metadata.EntryPoint]()
    monkeypatch.syspath_prepend(tmp_path)

    def of(group: str) -> list[importlib.metadata.EntryPoint]:
        return entries

    monkeypatch.setattr(module, "entry_points_of", of)
    clear()

    def add(name: str, text: str) -> None:
        of = f"{tmp_path.name.replace('-', '_')}_{len(entries)}"
        (tmp_path / f"{of}.py").write_text(text)
        entries.append(importlib.metadata.EntryPoint(name, f"{of}:found", "braid.spaces"))

    yield add
    clear()


PATH = "from pathlib import Path\nfound = Path('{}.toml')\n"


@pytest.mark.parametrize(
    "text", ["found = ", "raise RuntimeError('no')", "import of_no_package", "lost = 1"]
)
def test_a_package_that_cannot_be_loaded_is_named(
    installed: Callable[[str, str], None], text: str
) -> None:
    installed("mine", text)
    with pytest.raises(BraidError, match=r"entry point 'mine' .* cannot be loaded"):
        module.installed_paths("braid.spaces")


def test_two_packages_with_one_name(installed: Callable[[str, str], None]) -> None:
    installed("mine", PATH.format("a"))
    installed("other", PATH.format("a"))
    assert sorted(module.installed_paths("braid.spaces")) == ["mine", "other"]
    clear()
    installed("mine", PATH.format("b"))
    with pytest.raises(BraidError, match=r"two files 'mine' .* 'a\.toml', 'b\.toml'"):
        module.installed_paths("braid.spaces")


def test_a_package_that_cannot_be_loaded_is_in_the_way_of_its_own_name_alone(
    installed: Callable[[str, str], None],
) -> None:
    installed("broken", "raise RuntimeError('no')")
    installed("mine", PATH.format("a"))
    assert module.installed_path("braid.spaces", "mine") == Path("a.toml")
    assert module.installed_path("braid.spaces", "of no package") is None
    assert module.installed_names("braid.spaces") == ("broken", "mine")
    with pytest.raises(BraidError, match=r"entry point 'broken' .* cannot be loaded"):
        module.installed_path("braid.spaces", "broken")


def test_targets_beside_one_that_cannot_be_loaded(
    installed: Callable[[str, str], None],
) -> None:
    installed("broken", "raise RuntimeError('no')")
    assert load_target().name == "host"
    with pytest.raises(BraidError, match="there is no target 'hots'") as raised:
        load_target("hots")
    assert raised.value.hint is not None and "broken" in raised.value.hint
