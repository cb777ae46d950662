"""Put what braid needs of upstream MLIR into its wheel, in place of a dependency.

The wheel of `torch-mlir` brings debug symbols, a copy of mlir-opt and a Python class for every op;
without them it takes little more than half. `braid.support.mlir_bindings` finds what is bundled
where no bindings are installed.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
FOLDER = "braid/support/mlir"
"""The place of the bindings in the wheel: a separate one, since others may be installed."""
_EXTENSIONS = ("_mlir", "_mlirDialectsLLVM", "_mlirRegisterEverything", "_stablehlo")
"""The C modules that `braid.support.mlir_bindings` loads, and the work of `_mlir_libs`."""
_REQUIREMENT = re.compile(r"^Requires-Dist: torch-mlir==(?P<version>\d+)\n", re.MULTILINE)
_TAGS = re.compile(r"torch_mlir-\d+-(?P<tags>cp\d+-\w+?)-.*\.whl")


def download(arch: str, python: str, directory: Path) -> Path:
    """Download the wheel of torch-mlir that braid requires, for a version of Python."""
    pinned = re.search(r'"(torch-mlir==\d+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned is not None, "pyproject.toml pins torch-mlir"
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"),
        *("--no-deps", "--only-binary=:all:", "--python-version", python),
        *(f"--platform=manylinux_2_28_{arch}", f"--platform=manylinux_2_27_{arch}"),
        *("--dest", str(directory), pinned[1]),
    ]
    subprocess.run(command, check=True)
    (path,) = directory.glob("torch_mlir-*.whl")
    return path


def bundle(wheel: Path, bindings: Path, arch: str, output: Path) -> Path:
    """Write `wheel` with the parts of the wheel `bindings` into `output`, and tagged as those are.

    Raises:
        SystemExit: there is no program that strips libraries of this architecture.

    """
    tags = _TAGS.fullmatch(bindings.name)
    assert tags is not None, f"{bindings.name} is a wheel of torch-mlir for one version of Python"
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "wheel"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)
        with zipfile.ZipFile(bindings) as archive:
            archive.extractall(tree / FOLDER, list(_needed(archive)))
        (licenses,) = (tree / FOLDER).glob("*.dist-info")
        (licenses / "licenses" / "LICENSE").rename(tree / FOLDER / "LICENSE")
        shutil.rmtree(licenses)
        for library in (tree / FOLDER).rglob("*.so"):
            subprocess.run([_strip(arch), "--strip-all", library], check=True)
        (info,) = tree.glob("braid_compiler-*.dist-info")
        metadata, count = _REQUIREMENT.subn("", (info / "METADATA").read_text())
        assert count == 1, "the wheel requires torch-mlir"
        (info / "METADATA").write_text(metadata)
        stamp = (info / "WHEEL").read_text()
        tag = re.search(r"^Tag: py3-none-(\w+)$", stamp, re.MULTILINE)
        assert tag is not None, "the wheel is for one platform"
        (info / "WHEEL").write_text(stamp.replace("py3-none", tags["tags"]))
        output.mkdir(parents=True, exist_ok=True)
        path = output / wheel.name.replace("py3-none", tags["tags"])
        command = [sys.executable, "-m", "wheel", "pack", "--dest-dir", str(output), str(tree)]
        subprocess.run(command, check=True)
        assert path.is_file(), f"wheel pack has written {path.name}"
        return path


def _needed(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the libraries, the C modules that braid loads, and the license.

    Left out are classes of ops, tools, and modules of dialects that braid has as text alone.
    """
    for name in archive.namelist():
        path = PurePosixPath(name)
        is_module = path.suffix == ".py" and path.parent.name in ("torch_mlir", "_mlir_libs")
        is_library = path.suffix == ".so" and (
            path.name.startswith("lib") or path.name.partition(".")[0] in _EXTENSIONS
        )
        if is_library or is_module or name.endswith("licenses/LICENSE"):
            yield name


def _strip(arch: str) -> str:
    names = ["strip"] if platform.machine() == arch else [f"{arch}-linux-gnu-strip", "llvm-strip"]
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    sys.exit(f"release/bundle.py: needs {' or '.join(names)} for {arch}: make cross-tools")


def main() -> None:
    """Bundle a wheel for this machine and this Python."""
    parser = argparse.ArgumentParser(description="Put upstream MLIR into a wheel of braid.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("output", type=Path, help="the directory to put the new wheel into")
    options = parser.parse_args()
    arch = platform.machine()
    with tempfile.TemporaryDirectory() as name:
        bindings = download(arch, f"{sys.version_info[0]}.{sys.version_info[1]}", Path(name))
        print(bundle(options.wheel, bindings, arch, options.output))


if __name__ == "__main__":
    main()
