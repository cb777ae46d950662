"""Many artifacts in one process: each runs its own code, whatever was loaded and dropped before."""

import errno
import gc
import os
import random
import struct
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.runtime.artifact import write_artifact
from braid.runtime.manifest import Manifest
from test.c_programs import PLUGIN, build, with_runtime

PROGRAM = Path(__file__).with_name("many_models.c")
COLUMNS = 8
ARTIFACTS, THREADS, STEPS = 100, 4, 150


@pytest.fixture
def paths(tmp_path: Path, code: bytes, section: np.ndarray, manifest: Manifest) -> list[Path]:
    """Artifacts with the same weights, of which number i, from 1 on, has the gain i in its code."""
    tag = b"the gain"
    assert code.count(tag) == 1
    at = code.index(tag) + len(tag)
    found: list[Path] = []
    for gain in range(1, ARTIFACTS + 1):
        own = code[:at] + struct.pack("<d", gain) + code[at + 8 :]
        found.append(tmp_path / f"{gain}.braid")
        write_artifact(found[-1], manifest, own, section)
    return found


def is_right(model: braid.Model, index: int) -> bool:
    y, _ = model.run([np.ones((2, COLUMNS), np.float32)])
    return np.array_equal(y, np.tile((index + 1) * (3 + np.arange(COLUMNS)), (2, 1)))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mappings() -> int:
    """Of code and of artifacts."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("braid-code" in line or line.endswith(".braid") for line in lines)


def test_a_second_artifact_is_not_the_first(paths: list[Path]) -> None:
    first, second = braid.load(paths[0]), braid.load(paths[1])
    assert is_right(second, 1)
    assert is_right(first, 0)


def test_loaded_and_dropped_in_random_order(paths: list[Path]) -> None:
    gc.collect()
    before = open_descriptors(), mappings()
    models: list[braid.Model | None] = [braid.load(path) for path in paths]
    assert mappings() > before[1]
    assert open_descriptors() == before[0]
    order = random.Random(0).sample(range(ARTIFACTS), ARTIFACTS)
    assert [i for i in order if not is_right(models[i], i)] == []
    wrong: list[int] = []
    locks = [threading.Lock() for _ in paths]

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(STEPS):
            i = rng.randrange(ARTIFACTS)
            with locks[i]:
                model = models[i] = models[i] or braid.load(paths[i])
                if not is_right(model, i):
                    wrong.append(i)
                if rng.random() < 0.5:
                    models[i] = None
                del model

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    models.clear()
    gc.collect()
    assert (open_descriptors(), mappings()) == before


def test_twenty_in_c(paths: list[Path], tmp_path: Path) -> None:
    program = build(tmp_path / "many_models", PROGRAM, *with_runtime())
    command = [program, "500", *paths[:20]]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


_WITHOUT_MEMFD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
int memfd_create(const char *name, unsigned flags) {
  (void)name, (void)flags;
  errno = atoi(getenv("MEMFD_ERROR"));
  return -1;
}
int mkostemp(char *path, int flags) {
  int (*next)(char *, int) = (int (*)(char *, int))dlsym(RTLD_NEXT, "mkostemp");
  errno = ENOSPC;
  return getenv("NO_ROOM") ? -1 : next(path, flags);
}
int fstatvfs(int fd, struct statvfs *status) {
  (void)fd;
  *status = (struct statvfs){.f_flag = getenv("NO_EXECUTION") ? ST_NOEXEC : 0};
  return 0;
}
"""


def test_without_memfd_no_file_is_left(paths: list[Path], tmp_path: Path) -> None:
    """As on a system that has none, or a container without /proc."""
    source, library, directory = tmp_path / "no.c", tmp_path / "no.so", tmp_path / "temporary"
    directory.mkdir()
    source.write_text(_WITHOUT_MEMFD)
    program = build(tmp_path / "many_models", PROGRAM, *with_runtime())
    subprocess.run(["cc", *PLUGIN, source, "-o", library, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "TMPDIR": str(directory)}

    def load(**variables: str) -> tuple[int, str]:
        result = subprocess.run(
            [program, "200", *paths[:10]],
            env={**environment, "MEMFD_ERROR": str(errno.ENOSYS), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not directory.exists() or list(directory.iterdir()) == []
        return result.returncode, result.stderr

    assert load() == (0, "")
    assert load(MEMFD_ERROR=str(errno.EPERM)) == (0, "")  # of a sandbox
    status, said = load(MEMFD_ERROR=str(errno.EMFILE))
    assert status == 1 and "cannot load the model's code: Too many open files" in said
    status, said = load(NO_ROOM="1")
    assert status == 1 and f"no file can be made in '{directory}': No space left" in said
    status, said = load(NO_EXECUTION="1")
    assert status == 1 and f"files in '{directory}' cannot be executed; set TMPDIR" in said
    directory.rmdir()
    assert load() == (0, "")  # there are other places
