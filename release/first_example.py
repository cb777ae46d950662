"""Install wheels into a fresh environment and run README's first example there.

`python release/first_example.py DIRECTORY [--seconds 120] [--mib 600]` takes the wheel of
`braid-compiler` in a directory that fits this Python. It prints how long installing, compiling and
running take together, and how much the environment takes on the disk. Fails where `pip check` or a
command does, or where it takes more than was given.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from version import version

ROOT = Path(__file__).parents[1]
_EXAMPLE = re.compile(
    r"^```bash\n(?P<commands>[^`]*benchmarks\.models\.make[^`]*)^```", re.MULTILINE
)


def first_example() -> str:
    """Return the commands of README that make a network, measure and explain it."""
    match = _EXAMPLE.search((ROOT / "README.md").read_text())
    if match is None:
        sys.exit("release/first_example.py: README.md has no block that makes a model")
    return match["commands"]


def run_example(wheels: Path, directory: Path) -> tuple[float, int]:
    """Run the example in an environment with one of the wheels; returns seconds and MiB.

    Raises:
        CalledProcessError: a command has failed.

    """
    begin = time.perf_counter()
    venv.create(directory / "venv", with_pip=True)
    scripts = directory / "venv" / "bin"
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check"]
    found = ["--find-links", wheels, f"braid-compiler=={version()}"]
    subprocess.run([*pip, "install", "--quiet", *found], check=True)
    subprocess.run([*pip, "check"], check=True)
    # The code that makes models is in the checkout, whose braid must not be found.
    work = directory / "work"
    shutil.copytree(ROOT / "benchmarks", work / "benchmarks")
    environment = os.environ | {
        "PATH": os.pathsep.join([str(scripts), os.environ.get("PATH", os.defpath)]),
        "BRAID_CACHE_DIR": str(directory / "cache"),
    }
    environment.pop("PYTHONPATH", None)
    subprocess.run(["bash", "-ec", first_example()], check=True, cwd=work, env=environment)
    seconds = time.perf_counter() - begin
    used = subprocess.run(
        ["du", "-sm", directory / "venv"], capture_output=True, text=True, check=True
    )
    return seconds, int(used.stdout.split()[0])


def main() -> None:
    """Run the example and compare what it takes with the limits."""
    parser = argparse.ArgumentParser(description="Run README's first example from wheels.")
    parser.add_argument("wheels", type=Path, help="the directory with the wheels")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--mib", type=int, default=600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        seconds, mib = run_example(options.wheels.resolve(), Path(name))
    print(f"installed, compiled and run in {seconds:.0f} s; the environment takes {mib} MiB")
    if seconds > options.seconds or mib > options.mib:
        sys.exit(f"release/first_example.py: more than {options.seconds:g} s or {options.mib} MiB")


if __name__ == "__main__":
    main()
