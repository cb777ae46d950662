from pathlib import Path

import numpy as np
import pytest

from braid.lowering.cpu.call import CallableKernel, call_kernel
from braid.lowering.host.codegen import compiler
from braid.lowering.host.codegen.compiler import compile_kernel, compile_kernels
from braid.lowering.host.codegen.kernel_stages import emit
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.support.errors import BraidError
from braid.support.object_cache import Kind, ObjectCache

X = np.arange(8, dtype=np.float32)


def files(cache: ObjectCache) -> list[Path]:
    return [path for path in cache.directory.rglob("*") if path.is_file()]


def test_a_kernel_runs(make_kernel, cache) -> None:
    y = np.zeros_like(X)
    call_kernel(make_kernel(factor=3.0), [X, y])
    np.testing.assert_allclose(y, 3 * np.cbrt(X), rtol=1e-6)


def test_a_part_of_the_grid(make_kernel, cache) -> None:
    y = np.zeros_like(X)
    CallableKernel(make_kernel())(X, y, begin=2, end=4)
    assert np.flatnonzero(y).tolist() == [2, 3]


def test_names_share_an_entry(make_kernel, cache, monkeypatch) -> None:
    first = compile_kernel(make_kernel("first"))
    monkeypatch.setattr(compiler, "_compile", lambda names, *_: [] if not names else pytest.fail())
    second = compile_kernel(make_kernel("a_much_longer_name_for_the_second"))
    assert len(files(cache)) == 1
    code = load_objects([first, second])
    assert code.address("first") != code.address("a_much_longer_name_for_the_second")


def test_other_code_or_machine_is_another_entry(make_kernel, cache) -> None:
    kernels = [make_kernel(factor=float(i)) for i in range(3)]
    compile_kernels(kernels, jobs=1)
    assert len(files(cache)) == 3


def test_unwritable_cache(make_kernel, tmp_path, monkeypatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("BRAID_CACHE_DIR", str(blocked))
    assert compile_kernel(make_kernel())


def test_an_entry_that_cannot_be_written_leaves_nothing(cache, monkeypatch) -> None:
    def full_disk(*_: object) -> Path:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    cache.put(Kind.OBJECT, "0123", b"object")
    assert files(cache) == []
    assert cache.get(Kind.OBJECT, "0123") is None


def test_workers_keep_the_order(make_kernel, cache) -> None:
    kernels = [make_kernel(f"k{i}", float(i + 1)) for i in range(4)]
    code = load_objects(compile_kernels([*kernels, kernels[0]], jobs=2)[:4])
    assert len({code.address(f"k{i}") for i in range(4)}) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_kernel_that_upstream_leaves_is_an_error(make_kernel, cache, jobs) -> None:
    """Its translation would end the process."""
    text = """func.func @NAME(%x: memref<2x0xf32>, %b: index, %e: index) { func.return }"""
    with pytest.raises(BraidError, match="kernel 'bad': upstream MLIR cannot lower"):
        compile_kernels([make_kernel("bad", text=text)], jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_rejected_kernel_is_named(make_kernel, cache, jobs) -> None:
    text = """func.func @NAME(%b: index, %e: index) { "some.thing"() : () -> ()
    func.return }"""
    with pytest.raises(BraidError, match="kernel 'bad': upstream MLIR rejects"):
        compile_kernels([make_kernel("bad", text=text)], jobs=jobs)
    assert files(cache) == []


def test_a_crash_of_llvm_is_an_error(make_kernel, cache) -> None:
    """An instruction that no machine has: LLVM ends the process that compiles it."""
    text = """func.func @NAME(%x: memref<1xf32>, %b: index, %e: index) {
      "llvm.inline_asm"() <{asm_string = "no_such_instruction", constraints = "", has_side_effects}>
        : () -> ()
      func.return }"""
    with pytest.raises(BraidError, match="kernel 'crash'"):
        compile_kernels([make_kernel("crash", text=text), make_kernel("good")], jobs=2)


def test_too_long_a_symbol(make_kernel, cache) -> None:
    with pytest.raises(BraidError, match="longer than 128 bytes"):
        compile_kernel(make_kernel("x" * 129))


def test_unknown_symbol(make_kernel, cache) -> None:
    with pytest.raises(BraidError, match="nothing_like_it"):
        load_objects([compile_kernel(make_kernel())]).address("nothing_like_it")


@pytest.mark.parametrize(
    ("stage", "expected"),
    [("linalg", "scf.for"), ("llvm", "define void @kernel(ptr"), ("asm", "kernel:")],
)
def test_emit(make_kernel, stage, expected) -> None:
    assert expected in emit(make_kernel(), stage)


def test_emit_object(make_kernel, cache) -> None:
    assert emit(make_kernel(), "obj") == compile_kernel(make_kernel())
