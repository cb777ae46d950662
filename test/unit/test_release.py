"""A release: its version, its changelog, its workflow and the example that it tries."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import yaml

import braid
from braid.runtime.artifact import FORMAT_VERSION
from braid.support.records.database import REVISION

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    """Load a script of `release/`, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "release"))  # as for a script that is run
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "release"))
    return module


def test_this_version_can_be_released() -> None:
    assert script("version").problem(f"v{braid.__version__}") is None


def test_a_tag_of_another_version_is_refused() -> None:
    problem = script("version").problem("v9.9.9")
    assert problem == f"the tag is 'v9.9.9', but braid/__init__.py says version {braid.__version__}"


def test_the_workflow_runs_what_is_there() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "run" in step]
    makefile = (ROOT / "Makefile").read_text()
    for command in "\n".join(runs).splitlines():
        words = command.split()
        if "make" in words:
            target = words[words.index("make") + 1]
            assert f"\n{target}:" in makefile, command
        for word in words:
            if word.endswith(".py"):
                assert (ROOT / word).is_file(), command
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}  # trusted publishing: no token
    assert publish["needs"] == "build"


def test_the_example_is_the_first_of_readme() -> None:
    commands = script("first_example").first_example()
    assert [line.split()[0] for line in commands.splitlines()] == ["python", "braid", "braid"]


def test_the_promise_of_this_version_holds() -> None:
    """A patch release changes no number in the table of docs/compatibility.md."""
    minor = braid.__version__.rpartition(".")[0]
    page = (ROOT / "docs" / "compatibility.md").read_text()
    row = re.search(rf"^\| {re.escape(minor)} \| (.*) \|$", page, re.MULTILINE)
    assert row is not None, f"docs/compatibility.md has no row for {minor}"
    headers = ROOT / "runtime" / "native" / "include" / "braid"
    text = (headers / "runtime.h").read_text() + (headers / "device.h").read_text()
    defined = dict(re.findall(r"#define (BRAID_\w+_VERSION) (\d+)", text))
    assert int(defined["BRAID_FORMAT_VERSION"]) == FORMAT_VERSION
    abi, device_abi = defined["BRAID_ABI_VERSION"], defined["BRAID_DEVICE_ABI_VERSION"]
    assert row[1].split(" | ") == [str(FORMAT_VERSION), abi, device_abi, REVISION]
