"""Files that were made to hang, exhaust or confuse: a diagnostic within seconds, never a crash."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "hostile.py"
QUICK = [
    "if_nested",
    "if_nested_less",
    "if_nested_and_run",
    "laughs",
    "calls_in_a_circle",
    "long_names",
    "external_pipe",
    "external_device",
    "external_link",
    "external_offset",
    "external_overflow",
    "raw_negative",
    "pipe_model",
    "device_module",
    "directory_target",
    "pipe_profile",
    "pipe_input",
    "pipe_stream_text",
    "profile_deep",
    "profile_huge_number",
    "target_deep",
    "target_families",
    "target_module",
    "target_plugin",
    "target_nan",
    "input_huge",
    "opt_regions",
    "module_minus",
    "module_types",
    "module_comments",
    "stream_text_long",
    "safetensors_good",
    "safetensors_deep",
    "safetensors_negative",
    "safetensors_pipe",
]


def check(directory: Path, *cases: str) -> int:
    """Run cases, by default all, in a process of their own; return how many there were."""
    command = [sys.executable, str(WORKER), str(directory), *cases]
    worker = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    said = f"status {worker.returncode}\n{worker.stdout[-4000:]}\n{worker.stderr[-2000:]}"
    assert worker.returncode == 0 and ", 0 wrong" in worker.stdout, said
    return int(worker.stdout.splitlines()[-1].split()[0])


def test_some_cases(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", check(tmp_path, *QUICK))


@pytest.mark.slow
def test_all_cases(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", check(tmp_path))
