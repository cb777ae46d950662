"""Shared objects are known to be older than the sources beside the Python code."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from braid.support.errors import BraidError
from braid.support.shared_objects import check_sources, digest_of_sources

STRUCT = "struct pair { int a; int b; };\n"


def built(directory: Path, digest: str) -> ctypes.CDLL:
    """Return a library of `directory/native` that says that it was built from sources of this
    digest."""
    source, library = directory / "tells.c", directory / f"lib{digest[:8]}.so"
    source.write_text(f'const char *tells(void) {{ return "{digest}"; }}\n', encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def test_other_sources_are_noticed(tmp_path: Path) -> None:
    headers = tmp_path / "native" / "include" / "braid"
    headers.mkdir(parents=True)
    (tmp_path / "native" / "src").mkdir()
    (headers / "pair.h").write_text(STRUCT, encoding="utf-8")
    (tmp_path / "native" / "src" / "pair.c").write_text("int sum;\n", encoding="utf-8")
    library = built(tmp_path, digest_of_sources(tmp_path / "native"))
    check_sources(library, "tells", [str(tmp_path)])
    check_sources(library, "tells", [str(tmp_path / "elsewhere")])  # as in a wheel
    (headers / "pair.h").write_text(STRUCT.replace("int a", "long a"), encoding="utf-8")
    with pytest.raises(BraidError, match="built from other sources") as caught:
        check_sources(library, "tells", [str(tmp_path)])
    assert "make build" in str(caught.value.hint)
    with pytest.raises(BraidError, match="has no function 'other'"):
        check_sources(library, "other", [str(tmp_path)])


@pytest.mark.parametrize("package", ["runtime", "solvers"])
def test_cmake_digests_the_same(package: str, tmp_path: Path) -> None:
    """CMake configures a copy of the sources; its digest is that of Python."""
    root = Path(__file__).parents[3]
    sources = root / package / "native"
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("needs CMake")
    script = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    begin = script.index("function(braid_digest_sources")
    function = script[begin : script.index("endfunction()", begin) + len("endfunction()")]
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.24)\nproject(digest LANGUAGES NONE)\n{function}\n"
        f"braid_digest_sources({sources})\n"
        f"get_source_file_property(found {sources}/src/sources.c COMPILE_DEFINITIONS)\n"
        'message(STATUS "found ${found}")\n',
        encoding="utf-8",
    )
    done = subprocess.run(
        [cmake, "-S", tmp_path, "-B", tmp_path / "build"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert digest_of_sources(sources) in done.stdout
