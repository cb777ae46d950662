"""How lanes wait for each other, in C and under the thread sanitizer."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "runtime" / "native"
PROGRAM = Path(__file__).with_name("lanes_race.c")
LANES, ROUNDS = 4, 500


def test_what_is_posted_is_seen_without_a_race(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    places = [f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'src'}"]
    program = tmp_path / "lanes"
    command = [compiler, "-std=gnu11", "-O1", "-g", *places, "-pthread", "-fsanitize=thread"]
    command += [str(PROGRAM), str(SOURCES / "src" / "lanes.c"), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        command.remove("-fsanitize=thread")
        subprocess.run(command, check=True)
        pytest.skip("the compiler has no thread sanitizer")
    result = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    lanes, rounds = sum(range(LANES)) * ROUNDS, LANES * sum(range(1, ROUNDS + 1))
    assert int(result.stdout) == lanes + rounds
