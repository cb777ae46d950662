"""The errors that the emulator of GPUs finds in wrong kernels, and none in right ones."""

import numpy as np
import pytest

from braid.support.errors import BraidError
from test.run.gpu.conftest import run_text

N = 64

# Each thread writes its element to shared memory, and takes that of the thread opposite.
REVERSE = """ workgroup(%s: memref<64xf32, 3>) {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<64xf32>
  memref.store %v, %s[%t] : memref<64xf32, 3>
  gpu.barrier
  %last = arith.constant 63 : index
  %o = arith.subi %last, %t : index
  %w = memref.load %s[%o] : memref<64xf32, 3>
  memref.store %w, %y[%t] : memref<64xf32>
}"""


def arrays() -> list[np.ndarray]:
    return [np.arange(N, dtype=np.float32), np.zeros(N, np.float32)]


def run(body: str, threads: int = N, blocks: int = 1) -> np.ndarray:
    x, y = arrays()
    run_text(body, [x, y], threads=threads, blocks=blocks)
    return y


def test_shared_memory_with_a_barrier() -> None:
    assert np.array_equal(run(REVERSE, blocks=3), np.arange(N)[::-1])


def test_shuffles_within_segments() -> None:
    y = run(
        """ {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<64xf32>
  %w = arith.constant 32 : i32
  %one = arith.constant 1 : i32
  %a, %pa = gpu.shuffle xor %v, %one, %w : f32
  %b, %pb = gpu.shuffle down %v, %one, %w : f32
  %c, %pc = gpu.shuffle up %v, %one, %w : f32
  %d, %pd = gpu.shuffle idx %v, %one, %w : f32
  %z = arith.constant 1000.0 : f32
  %bb = arith.select %pb, %b, %z : f32
  %cc = arith.select %pc, %c, %z : f32
  %s = arith.addf %a, %bb : f32
  %q = arith.addf %s, %cc : f32
  %r = arith.addf %q, %d : f32
  memref.store %r, %y[%t] : memref<64xf32>
}"""
    )
    t = np.arange(N)
    down = np.where(t % 32 == 31, 1000, t + 1)
    up = np.where(t % 32 == 0, 1000, t - 1)
    assert np.array_equal(y, (t ^ 1) + down + up + (t - t % 32 + 1))


def test_atomics() -> None:
    y = run(
        """ {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<64xf32>
  %zero = arith.constant 0 : index
  %old = memref.atomic_rmw addf %v, %y[%zero] : (f32, memref<64xf32>) -> f32
}"""
    )
    assert y[0] == np.arange(N).sum()


SHARED_SUM = """ workgroup(%s: memref<1xf32, 3>) {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<64xf32>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %first = arith.cmpi eq, %t, %zero : index
  scf.if %first {
    memref.store %none, %s[%zero] : memref<1xf32, 3>
  }
  gpu.barrier  // before
  %old = memref.atomic_rmw addf %v, %s[%zero] : (f32, memref<1xf32, 3>) -> f32
  gpu.barrier  // after
  %w = memref.load %s[%zero] : memref<1xf32, 3>
  memref.store %w, %y[%t] : memref<64xf32>
}"""


def test_atomics_in_shared_memory() -> None:
    """They do not race with each other, but with all other accesses."""
    assert np.all(run(SHARED_SUM) == np.arange(N).sum())
    for barrier in ("before", "after"):
        with pytest.raises(BraidError, match=r"race: .* since the barrier"):
            run(SHARED_SUM.replace(f"  gpu.barrier  // {barrier}\n", ""))
    with pytest.raises(BraidError, match="no thread of the block has written"):
        run(SHARED_SUM.replace("    memref.store %none, %s[%zero] : memref<1xf32, 3>\n", ""))


MUTANTS = {
    "dropped barrier": (("  gpu.barrier\n", ""), N, "which no thread of the block has written"),
    "barrier after the read": (
        ("  gpu.barrier\n", "  memref.store %v, %s[%t] : memref<64xf32, 3>\n"),
        N,
        "which no thread of the block has written",
    ),
    "same element": (
        ("%v, %s[%t]", "%v, %s[%zero]"),
        N,
        "race: writes byte 0 of .*, which thread 0 has written",
    ),
    "off by one": (("%y[%t]", "%y[%next]"), N, "writes 4 bytes at offset 256 of result 0"),
    "before the first": (("%x[%t]", "%x[%before]"), N, "reads 4 bytes at offset -4 of operand 0"),
    "half of the threads": (("", ""), N // 2, "no thread of the block has written"),
    "operand is written": (("%w, %y[%t]", "%w, %x[%t]"), N, "to operand 0, which is only read"),
    "barrier in a branch": (
        ("  gpu.barrier\n", "  scf.if %low {\n    gpu.barrier\n  }\n"),
        N,
        "which no thread|divergent barrier",
    ),
    "barrier that some do not reach": (
        ("  gpu.barrier\n", "  gpu.barrier\n  scf.if %low {\n    gpu.barrier\n  }\n"),
        N,
        "divergent barrier: 1 threads wait at it, 63 have ended",
    ),
    "shuffle in a branch": (
        ("  gpu.barrier\n", "  gpu.barrier\n  scf.if %low {\n%SHUFFLE\n  }\n"),
        N,
        "takes a value from lane|waits in a shuffle",
    ),
}
PRELUDE = """  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %next = arith.addi %t, %one : index
  %before = arith.subi %t, %one : index
  %low = arith.cmpi ult, %t, %one : index
"""
SHUFFLE = """  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %m, %p = gpu.shuffle xor %v, %c1, %c32 : f32
  memref.store %m, %y[%t] : memref<64xf32>
"""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str) -> None:
    (old, new), threads, reason = MUTANTS[name]
    mutant = REVERSE.replace("gpu.thread_id x\n", "gpu.thread_id x\n" + PRELUDE)
    mutant = mutant.replace(old, new.replace("%SHUFFLE", SHUFFLE)) if old else mutant
    assert mutant != REVERSE
    with pytest.raises(BraidError, match=reason) as caught:
        run(mutant, threads)
    assert caught.value.message.startswith("entry, block 0")


def test_race_of_a_write_after_a_read() -> None:
    """Rounds of one buffer need a barrier on both sides."""
    round = REVERSE.partition("{")[2].rpartition("}")[0].partition("%t = gpu.thread_id x")[2]
    second = round
    for name in ("%v", "%last", "%o", "%w"):
        second = second.replace(name + " ", name + "2 ").replace(name + ",", name + "2,")
        second = second.replace(name + "]", name + "2]")
    head = " workgroup(%s: memref<64xf32, 3>) {\n  %t = gpu.thread_id x"
    assert np.array_equal(run(f"{head}{round}  gpu.barrier\n{second}}}"), np.arange(N)[::-1])
    with pytest.raises(BraidError, match=r"race: .* since the barrier"):
        run(f"{head}{round}{second}}}")


def test_misaligned_access() -> None:
    x, y = arrays()
    body = """ {
  %t = gpu.thread_id x
  %v = vector.load %x[%t] {alignment = 16} : memref<64xf32>, vector<4xf32>
  vector.store %v, %y[%t] {alignment = 16} : memref<64xf32>, vector<4xf32>
}"""
    run_text(body, [x, y], threads=1)
    assert np.array_equal(y[:4], x[:4])
    with pytest.raises(BraidError, match=r"reads 16 bytes at .*, which is not aligned to 16"):
        run_text(body, [x, y], threads=2)
