"""Kernels that call OpenBLAS are right in all layouts, and stand beside those of oneDNN."""

from pathlib import Path

import numpy as np
import pytest

import braid
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.settings import write_settings
from braid.frontends.mlir import parse_mlir
from braid.lowering.cpu.call import call_kernel
from braid.lowering.cpu.library.blas import OpenBlasFamily
from braid.lowering.cpu.library.family import OneDnnFamily
from braid.passes.infrastructure.manager import run_pipeline
from braid.runtime.artifact import read_artifact
from braid.support import shared_objects
from braid.support.errors import BraidError
from braid.support.shared_objects import ONEDNN, OPENBLAS, loaded_library
from braid.targets.backends import kernel_families
from braid.targets.machines.resolve import target_of
from braid.tuning.kernel_runs import Reference
from braid.tuning.kernel_tasks import kernel_tasks
from braid.tuning.layout_candidates import in_layouts
from braid.tuning.tune_kernels import Tuning, tune_kernels
from braid.universe import make_context
from test.machines import AVX2, HOST
from test.schedules import emitted

needs_library = pytest.mark.skipif(
    loaded_library(OPENBLAS) is None, reason="OpenBLAS is not installed"
)
needs_both = pytest.mark.skipif(
    loaded_library(OPENBLAS) is None or loaded_library(ONEDNN) is None,
    reason="OpenBLAS or oneDNN is not installed",
)


def shaped(*extents: int, number: str = "f32") -> str:
    return f"tensor<{'x'.join(map(str, extents))}x{number}>"


def product(lhs: tuple[int, ...], rhs: tuple[int, ...], number: str = "f32") -> str:
    """Return a matmul with usual ops after it: a row is added, and the negative part is cut off."""
    batch = tuple(np.broadcast_shapes(lhs[:-2], rhs[:-2]))
    y = shaped(*batch, lhs[-2], rhs[-1], number=number)
    row = shaped(*(1,) * (len(lhs) - 1), rhs[-1], number=number)
    one = shaped(*(1,) * len(lhs), number=number)
    a, b = shaped(*lhs, number=number), shaped(*rhs, number=number)
    return f"""
func.func @main(%a: {a}, %b: {b}, %row: {row}, %r: {y}) -> {y} {{
  %zero = braid.constant {{value = dense<0.0> : {one}}} : {one}
  %m = braid.matmul %a, %b : ({a}, {b}) -> {y}
  %s = braid.add %m, %row : ({y}, {row}) -> {y}
  %t = braid.add %s, %r : ({y}, {y}) -> {y}
  %u = braid.maximum %t, %zero : ({y}, {one}) -> {y}
  func.return %u : {y}
}}"""


def plain(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> str:
    a, b, y = shaped(*lhs), shaped(*rhs), shaped(lhs[-2], rhs[-1])
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {y} {{
  %y = braid.matmul %a, %b : ({a}, {b}) -> {y}
  func.return %y : {y}
}}"""


MODELS = {
    "odd": product((17, 13), (13, 37)),
    "one row": product((1, 31), (31, 5)),
    "one column": product((9, 31), (31, 1)),
    "one term": product((9, 1), (1, 11)),
    "without more": plain((33, 65), (65, 19)),
    "shared right": product((3, 5, 7), (1, 7, 9)),
    "shared left": product((1, 5, 7), (3, 7, 9)),
    "batch": product((2, 3, 5, 7), (2, 3, 7, 9)),
    "mixed batch": product((2, 1, 5, 7), (1, 3, 7, 9)),
    "doubles": product((2, 19, 7), (2, 7, 21), "f64"),
}


def group_of(text: str) -> FusedOp:
    context = make_context()
    module = parse_mlir(context, text, "m.mlir").module
    run_pipeline(context, module, "select-fusion,apply-fusion")
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    return group


@needs_library
@pytest.mark.parametrize("name", MODELS)
def test_right_in_all_layouts(name: str) -> None:
    family, group = OpenBlasFamily(HOST), group_of(MODELS[name])
    found = family.match(group)
    assert found is not None and len(found.layouts) == 4
    for choice in found.layouts:
        stored = in_layouts(group, choice)
        candidate = family.match(stored)
        assert candidate is not None and candidate.seconds(choice) > 0
        reference = Reference.of(stored, choice)
        assert reference is not None
        results = reference.unwritten()
        call_kernel(emitted(candidate), [*reference.operands, *results])
        assert reference.agrees(results), choice


@needs_library
def test_a_matrix_times_itself() -> None:
    square = shaped(11, 11)
    group = group_of(f"""
func.func @main(%a: {square}) -> {square} {{
  %y = braid.matmul %a, %a : ({square}, {square}) -> {square}
  func.return %y : {square}
}}""")
    found = OpenBlasFamily(HOST).match(group)
    assert found is not None
    for choice in found.layouts:
        stored = in_layouts(group, choice)
        candidate, reference = OpenBlasFamily(HOST).match(stored), Reference.of(stored, choice)
        assert candidate is not None and reference is not None
        results = reference.unwritten()
        call_kernel(emitted(candidate), [*reference.operands, *results])
        assert reference.agrees(results), choice


def test_what_the_library_lacks_is_no_match() -> None:
    assert OpenBlasFamily(AVX2).match(group_of(MODELS["odd"])) is None
    assert OpenBlasFamily(HOST).match(group_of(product((4, 5), (5, 6), "f16"))) is None


@needs_library
def test_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on more threads than one, and from an artifact."""
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    module = parse_mlir(make_context(), MODELS["doubles"], "m.mlir").module  # oneDNN has none
    generated = braid.compile(module, jobs=1)
    called = braid.compile(module, jobs=1, kernels="library")
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(spec.shape) for spec in generated.inputs]
    np.testing.assert_allclose(called(*inputs), generated(*inputs), rtol=1e-9, atol=1e-12)
    called.save(tmp_path / "called.braid")
    assert read_artifact(tmp_path / "called.braid").manifest.libraries == (OPENBLAS,)
    loaded = braid.load(tmp_path / "called.braid", threads=2)
    np.testing.assert_array_equal(loaded(*inputs), called(*inputs))


@needs_library
def test_a_missing_library_is_said_at_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_mlir(make_context(), MODELS["doubles"], "m.mlir").module
    braid.compile(module, jobs=1, kernels="library").save(tmp_path / "m.braid")
    monkeypatch.setattr(shared_objects, "loaded_library", lambda name: None)
    with pytest.raises(BraidError, match=r"needs the library 'libscipy_openblas\.so'") as caught:
        braid.load(tmp_path / "m.braid")
    assert "pip install 'braid-compiler[openblas]'" in (caught.value.hint or "")


@needs_both
def test_both_libraries_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster one is the baseline of a search, and is what `--kernels=best` calls."""
    from braid.targets.costs.schedule_records import load_tuned
    from braid.tuning.timing_worker import TimingWorker

    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    context = make_context()
    module = parse_mlir(context, plain((33, 65), (65, 19)), "m.mlir").module
    run_pipeline(context, module, "select-fusion,apply-fusion,select-layouts,apply-layouts")
    (task,) = kernel_tasks(module)
    vendors = [kernel.match.family.name for kernel in task.library]
    assert set(vendors) == {"onednn", "openblas"}
    for fast in ("onednn", "openblas"):

        def seconds(_: object, request: object, fast: str = fast) -> float:
            libraries = getattr(request, "libraries", ())
            vendor = "openblas" if OPENBLAS in libraries else "onednn" if libraries else ""
            return {"": 3.0, fast: 1.0}.get(vendor, 2.0)

        monkeypatch.setattr(TimingWorker, "seconds", seconds)
        tune_kernels(module, Tuning(jobs=1, again=True))
        (record,) = load_tuned().values()
        assert record.keeps_library and (record.library, record.vendor) == (1.0, fast)
    model = parse_mlir(make_context(), plain((33, 65), (65, 19)), "m.mlir").module
    braid.compile(model, jobs=1, kernels="best").save(tmp_path / "m.braid")
    assert OPENBLAS in read_artifact(tmp_path / "m.braid").manifest.libraries


@needs_both
def test_other_families_take_what_no_library_does() -> None:
    module = parse_mlir(make_context(), MODELS["odd"], "m.mlir").module
    write_settings(module, {"kernels": "library"})
    first, second, *others = kernel_families(target_of(module).host_device)
    assert isinstance(first, OneDnnFamily) and isinstance(second, OpenBlasFamily)
    for text in (MODELS["odd"], MODELS["doubles"]):
        group = group_of(text)
        assert all(family.match(group) is None for family in others)
