"""Fuzzing for a given time: the property tests of this folder with ever new seeds.

`make fuzz MINUTES=20`, or `python test/fuzz/run.py --minutes 20 [--seed N] [FILE ...]`, where each
FILE is a test file of this folder (all of them by default). Ends with status 1 at the first
failure, which hypothesis has shrunk and remembers for the next run of the tests.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
EXAMPLES = "150"
"""Of every property between two looks at the clock; a minute or two."""


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
    rounds = 0
    while time.monotonic() < end:
        seed = arguments.seed + rounds
        command = [sys.executable, "-m", "pytest", "-q", "-x", *map(str, files)]
        command.append(f"--hypothesis-seed={seed}")
        seeded = {**environment, "BRAID_FUZZ_SEED": str(seed)}
        status = subprocess.run(command, env=seeded).returncode
        if status:
            print(f"found something with seed {seed} after {rounds} rounds without")
            return 1
        rounds += 1
    print(f"{rounds} rounds of {EXAMPLES} examples per property found nothing")
    return 0


def _test_files() -> str:
    return ", ".join(sorted(file.name for file in FOLDER.glob("test_*.py")))


if __name__ == "__main__":
    sys.exit(main())
