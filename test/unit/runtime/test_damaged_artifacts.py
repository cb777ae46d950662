"""Damaged artifacts are refused, or the damage is where nothing is: never another result."""

import dataclasses
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from test.unit.runtime.artifact_damage import damaged_bytes, joined, sections
from test.unit.runtime.test_run_model import run_model as run_model

WORKER = Path(__file__).with_name("artifact_damage.py")


def product() -> ModelProto:
    """Return the product of x and a constant, of 64 KiB of weights."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((64, 256), np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 256])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "product", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an artifact, next to which are its results for ones."""
    path = tmp_path_factory.mktemp("intact") / "product.braid"
    model = braid.compile(product(), jobs=1)
    model.save(path)
    np.save(path.with_suffix(".npy"), model(np.ones((4, 64), np.float32)))
    return path


def outcomes(kind: str, intact: Path, tmp_path: Path, first: int, end: int) -> Counter[str]:
    """How often each kind of outcome came; fails for a wrong one, and where the process died."""
    path = tmp_path / intact.name
    path.write_bytes(intact.read_bytes())
    expected = intact.with_suffix(".npy")
    command = [sys.executable, WORKER, kind, path, expected, str(first), str(end)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    assert result.returncode == 0, f"after {lines[-1:]}: {result.stderr}"
    assert len(lines) == end - first
    assert [line for line in lines if "WRONG" in line] == []
    return Counter(line.split()[1].rstrip(":") for line in lines)


def test_damaged_bytes(intact: Path, tmp_path: Path) -> None:
    assert outcomes("bytes", intact, tmp_path, 0, 60)["refused"] > 40


@pytest.mark.slow
def test_a_thousand_damaged_artifacts(intact: Path, tmp_path: Path) -> None:
    found = outcomes("bytes", intact, tmp_path, 60, 1060)
    print(f"damaged artifacts: {dict(found)}")
    assert found["refused"] > 700


def test_edited_manifests(intact: Path, tmp_path: Path) -> None:
    assert outcomes("manifest", intact, tmp_path, 0, 60)["refused"] > 30


@pytest.mark.slow
def test_three_hundred_edited_manifests(intact: Path, tmp_path: Path) -> None:
    found = outcomes("manifest", intact, tmp_path, 60, 360)
    print(f"edited manifests: {dict(found)}")
    assert found["refused"] > 150


def run_in_c(run_model: Path, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([run_model, path], capture_output=True, text=True, check=False)


def check_in_c(run_model: Path, intact: Path, tmp_path: Path, seeds: range) -> Counter[int]:
    """Statuses of the C example on the same damage."""
    expected = run_in_c(run_model, intact)
    assert expected.returncode == 0
    data, path = intact.read_bytes(), tmp_path / "damaged.braid"
    statuses = Counter[int]()
    for seed in seeds:
        path.write_bytes(damaged_bytes(data, random.Random(seed)))
        result = run_in_c(run_model, path)
        said = result.stdout if result.returncode == 0 else result.stderr
        assert result.returncode in (0, 1), seed
        assert (said == expected.stdout) if result.returncode == 0 else (str(path) in said), seed
        statuses[result.returncode] += 1
    return statuses


def test_damaged_bytes_in_c(run_model: Path, intact: Path, tmp_path: Path) -> None:
    assert check_in_c(run_model, intact, tmp_path, range(60))[1] > 40


@pytest.mark.slow
def test_a_thousand_damaged_artifacts_in_c(run_model: Path, intact: Path, tmp_path: Path) -> None:
    found = check_in_c(run_model, intact, tmp_path, range(60, 1060))
    print(f"damaged artifacts in C, by status: {dict(found)}")
    assert found[1] > 700


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arena_bytes": 2**62}, "its manifest says arena_bytes = 4611686018427387904, its code"),
        ({"cpu_features": []}, "its manifest says cpu_features"),
        ({"dims": [{"name": "n", "sizes": [1], "padded_from": 0}]}, "its manifest says dims"),
        ({"inputs": []}, "its manifest says inputs"),
        ({"outputs": []}, "its manifest says outputs"),
    ],
)
def test_a_manifest_that_contradicts_the_code(
    intact: Path, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    """Though all digests are right."""
    parts = dict(sections(intact.read_bytes()))
    parts[1] = json.dumps(json.loads(parts[1]) | change).encode()
    (tmp_path / "m.braid").write_bytes(joined(list(parts.items())))
    with pytest.raises(BraidError, match=message):
        braid.load(tmp_path / "m.braid")


def test_another_shape_is_refused(intact: Path, tmp_path: Path) -> None:
    parts = dict(sections(intact.read_bytes()))
    parts[1] = parts[1].replace(b"64", b"63", 1)
    (tmp_path / "m.braid").write_bytes(joined(list(parts.items())))
    with pytest.raises(BraidError, match="its manifest says inputs"):
        braid.load(tmp_path / "m.braid")


def test_weights_that_are_too_few(intact: Path, tmp_path: Path) -> None:
    parts = dict(sections(intact.read_bytes()))
    manifest = dataclasses.replace(read_artifact(intact).manifest, weights=())
    parts[1], parts[3] = manifest.to_json().encode(), parts[3][:-64]
    (tmp_path / "m.braid").write_bytes(joined(list(parts.items())))
    with pytest.raises(BraidError, match="code reads 65536 bytes of weights, there are 65472"):
        braid.load(tmp_path / "m.braid")


def test_damaged_weights_are_found_by_the_first_run(intact: Path, tmp_path: Path) -> None:
    data = bytearray(intact.read_bytes())
    data[4096] ^= 1
    (tmp_path / "m.braid").write_bytes(data)
    model = braid.load(tmp_path / "m.braid")
    for _ in range(2):
        with pytest.raises(BraidError, match=r"m\.braid' is damaged: the digest of its weights"):
            model(np.ones((4, 64), np.float32))
    with pytest.raises(BraidError, match="the digest of its weights is wrong"):
        model.save(tmp_path / "again.braid")
    assert not os.path.lexists(tmp_path / "again.braid")
