"""Other code means another version of the family: measurements of the code before do not hold."""

import os
from copy import deepcopy

import pytest

from test.unit.lowering.kernels.emitted_code import (
    CASES,
    COMMAND,
    changed_silently,
    digests,
    families,
    read,
    toolchain,
    write,
)

ANEW = f"write the record anew: {COMMAND}"


@pytest.fixture(autouse=True)
def no_measurements(tmp_path, monkeypatch) -> None:
    """Ignore measurements: tiles depend on costs, which a user may have measured."""
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


@pytest.mark.skipif("RECORD_EMITTED_CODE" not in os.environ, reason="no record is asked for")
def test_the_record_is_written() -> None:
    silent = write()
    assert not silent, f"raise the version of {', '.join(silent)} first"


@pytest.mark.parametrize("name", families()["avx512"])
def test_a_family_that_emits_other_code_has_another_version(name) -> None:
    record = read()
    assert record["toolchain"] == toolchain(), f"xDSL or MLIR has another version; {ANEW}"
    family, entry = families()["avx512"][name], record["families"].get(name)
    assert entry is not None, f"family '{name}' is new; {ANEW}"
    assert entry["version"] == family.version, f"family '{name}' has another version; {ANEW}"
    found = digests(name)
    assert found, f"add a group of family '{name}' to CASES"
    assert found.keys() == entry["digests"].keys(), f"the cases of '{name}' are others; {ANEW}"
    changed = [case for case, digest in found.items() if entry["digests"][case] != digest]
    assert not changed, (
        f"family '{name}' emits other code for {changed}. If that is meant, raise 'version' in "
        f"{type(family).__module__.replace('.', '/')}.py from {family.version} by 1, then {ANEW}"
    )


def test_the_same_is_emitted_twice() -> None:
    assert digests("gemm") == digests("gemm")


def test_a_record_is_not_written_over_a_silent_change() -> None:
    old = read()
    new = deepcopy(old)
    case = next(iter(new["families"]["gemm"]["digests"]))
    new["families"]["gemm"]["digests"][case] = "0"
    assert changed_silently(old, new) == ["gemm"]
    new["families"]["gemm"]["version"] += 1
    assert changed_silently(old, new) == []
    assert changed_silently({}, old) == []


def test_machines_get_code_of_their_own() -> None:
    found = digests("gemm")
    for case in CASES:
        if case.family == "gemm":
            assert found[f"{case.label}, avx512"] != found[f"{case.label}, sse"]


def test_another_emitter_inside_is_another_version_of_tiles() -> None:
    tiled = families()["avx512"]["tiled"]
    assert tiled.version > sum(
        family.version for name, family in families()["avx512"].items() if name != "tiled"
    )
