"""Requests that Schemathesis makes up by the OpenAPI of a real server find nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test.unit.tools.service.server import serving

COMMAND = Path(sys.executable).with_name("schemathesis")


@pytest.mark.slow
def test_made_up_requests(tmp_path: Path) -> None:
    assert shutil.which(COMMAND)
    with serving(tmp_path, "--queue-limit", "4") as server:
        options = ["-H", f"Authorization: Bearer {server.token}", "--max-examples", "20"]
        said = subprocess.run(
            [COMMAND, "run", f"{server.url}/openapi.json", *options, "--seed", "1"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert said.returncode == 0, said.stdout + said.stderr
        assert server.ask("GET", "/tasks")[0] == 200
