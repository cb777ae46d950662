"""Fuzzing for a given time: the property tests of this folder with ever new seeds.

`make fuzz MINUTES=20`, or `python test/fuzz/run.py --minutes 20 [--seed N] [FILE ...]`, where each
FILE is a test file of this folder (all of them by default). Ends with status 1 at the first
failure, which hypothesis has shrunk and remembers for the next run of the tests. Says how many
rounds and cases there were: examples of properties, trials of damage, models with parts exchanged.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).parent
EXAMPLES = "150"
"""Of every property between two looks at the clock; a minute or two."""
COUNT = "BRAID_FUZZ_COUNT"
"""The environment variable that tells the tests where to write how many cases they tried."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("files", nargs="*", metavar="FILE", help="test files of this folder")
    arguments = parser.parse_args()
    files = [FOLDER / file for file in arguments.files] or [FOLDER]
    for file in files:
        if not file.exists():
            parser.error(f"{file} does not exist; this folder has {_test_files()}")
    end = time.monotonic() + 60 * arguments.minutes
    environment = {**os.environ, "BRAID_FUZZ_EXAMPLES": EXAMPLES}
    rounds = cases = 0
    while time.monotonic() < end:
        seed = arguments.seed + rounds
        status, tried = _round(seed, files, environment)
        cases += tried
        if status:
            print(f"found something with seed {seed} after {rounds} rounds without, {cases} cases")
            return 1
        rounds += 1
    first, last = arguments.seed, arguments.seed + rounds - 1
    print(
        f"seeds {first} to {last}: {rounds} rounds of {EXAMPLES} examples per property, "
        f"{cases} cases, found nothing"
    )
    return 0


def _round(seed: int, files: list[Path], environment: dict[str, str]) -> tuple[int, int]:
    """Run the tests once; return pytest's status and how many cases they tried."""
    # A property of many examples takes longer than a test may take otherwise.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--timeout=0", *map(str, files)]
    command.append(f"--hypothesis-seed={seed}")
    with tempfile.TemporaryDirectory() as directory:
        count = Path(directory) / "count"
        seeded = {"BRAID_FUZZ_SEED": str(seed), COUNT: str(count)}
        status = subprocess.run(command, env=environment | seeded).returncode
        return status, int(count.read_text()) if count.exists() else 0


def _test_files() -> str:
    return ", ".join(sorted(file.name for file in FOLDER.glob("test_*.py")))


if __name__ == "__main__":
    sys.exit(main())
