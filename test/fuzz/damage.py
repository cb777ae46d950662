"""Damages kept files and checks the consequences: `python test/fuzz/damage.py CASE N SEED DIR`.

Runs as a process of its own, so that a signal is seen. Each of N trials damages some of the files
that an undamaged run left, runs the command again and compares with what the first run gave.
Prints the trial before it begins it, so that the last line names the one that ended the process.
"""

import contextlib
import functools
import io
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from braid.support import cache_files
from braid.support.cache_files import remove
from braid.support.errors import BraidError
from braid.support.records.file_store import FileStore
from braid.support.records.record_store import default_store
from braid.targets.costs.cost_records import append_records, load_records
from braid.tools.cli import main as braid

Files = dict[Path, bytes]
NOBODY = 65534
"""Another user."""


class Wrong(Exception):
    """A trial ended as it must not."""


def model(path: Path, seed: int = 0) -> None:
    """Return a few kernels: a convolution, a product, a softmax, sums."""
    rng = np.random.default_rng(seed)
    weights = {"w": (8, 3, 3, 3), "v": (16, 16)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["m"]),
        helper.make_node("Softmax", ["m"], ["s"], axis=-1),
        helper.make_node("ReduceMax", ["s"], ["z"], axes=[2], keepdims=1),
        helper.make_node("CumSum", ["s", "three"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "kept",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, None),
        ],
        [
            numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            for name, shape in weights.items()
        ]
        + [numpy_helper.from_array(np.array(3, np.int64), "three")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def command(*arguments: object, may_fail: bool = False) -> tuple[int, str]:
    """Status and standard error of `braid`, both as they must be."""
    cache_files._warned.clear()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = braid([str(argument) for argument in arguments])
    said = err.getvalue()
    if "internal error" in said or "Traceback" in said or "crashed" in said:
        raise Wrong(said)
    if status != 0 and not (may_fail and status == 1 and "error:" in said):
        raise Wrong(f"status {status}: {said}{out.getvalue()}")
    return status, said


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def zero(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data))
    end = rng.choice([len(data), min(len(data), begin + rng.randint(1, 64))])
    return data[:begin] + bytes(end - begin) + data[end:]


def noise(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data))
    return data[:begin] + rng.randbytes(rng.randint(1, 64)) + data[begin:]


def damage(path: Path, files: Files, rng: random.Random) -> None:
    """Damage the file at `path`, or swap it with another, or put what is not a file there.

    Or makes it one that other users may have written: by its mode, its owner, or a link.
    """
    data = files[path]
    match rng.randrange(16):
        case 0 | 1 | 2 | 3:
            path.write_bytes(flip(data, rng))
        case 4 | 5:
            path.write_bytes(truncate(data, rng))
        case 6 | 7:
            path.write_bytes(zero(data, rng))
        case 8:
            path.write_bytes(noise(data, rng))
        case 9 | 10 if alike := [p for p in _like(path, files) if p.is_file()]:
            other = rng.choice(alike)
            path.write_bytes(files[other])
            other.write_bytes(data)
        case 11:
            path.chmod(rng.choice([0o666, 0o622, 0o602, 0o664]))
        case 12:
            if os.geteuid() == 0:
                os.chown(path, NOBODY, -1)
        case 13 if alike := [p for p in files if p.is_file() and p != path]:
            path.unlink()
            rng.choice([Path.symlink_to, Path.hardlink_to])(path, rng.choice(alike))
        case _:
            path.unlink()
            kind: Callable[[Path], None] = rng.choice([os.mkfifo, Path.mkdir, Path.touch])
            kind(path)


def _like(path: Path, files: Files) -> list[Path]:
    """Return the other files of the same kind."""
    return [p for p in files if p != path and p.parts[:-2] == path.parts[:-2]]


def results(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}


def loosen(root: Path, rng: random.Random) -> None:
    """Let others write to some directories of the cache, as an umask of 002 did once."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in rng.sample(folders, min(len(folders), rng.randint(0, 3))):
        folder.chmod(rng.choice([0o777, 0o775, 0o770, 0o707]))


@contextlib.contextmanager
def others(root: Path, files: Files, rng: random.Random) -> Generator[None]:
    """Let another process put damaged, cut off and other entries there, and remove them.

    It writes whole files, never into an existing one, which readers may have mapped.
    """
    child = os.fork()
    if child == 0:
        while True:
            path, other = rng.choices(sorted(files), k=2)
            with contextlib.suppress(OSError):
                data = (flip(files[path], rng), truncate(files[path], rng), files[other])
                half = path.with_name(".half")
                half.write_bytes(rng.choice(data))
                half.replace(path)
                if rng.random() < 0.25:
                    path.unlink()
            time.sleep(rng.random() / 100)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def is_private(root: Path, files: Files) -> bool:
    """Whether nobody else may write to these entries and the directories around them.

    Directories that were not used since are tightened when they are.
    """
    around = {folder for path in files for folder in path.parents if folder.is_relative_to(root)}
    found = [path.lstat() for path in (*around, *files) if path.exists()]
    return all(not s.st_mode & 0o022 and s.st_uid == os.geteuid() for s in found)


def restore(root: Path, files: Files) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def is_other(path: Path, data: bytes) -> bool:
    """Whether an entry does not count as the one that was there."""
    if path.is_symlink() or not path.is_file() or path.read_bytes() != data:
        return True
    status = path.lstat()
    return bool(status.st_mode & 0o022) or status.st_uid != os.geteuid()


def cached(directory: Path, run: Callable[[], dict[str, bytes]], trials: int, seed: int) -> None:
    """`run` has the same result whatever happens to the cache, which is valid again after it."""
    root = Path(os.environ["BRAID_CACHE_DIR"])
    truth = run()
    if run() != truth:
        raise Wrong("two undamaged runs differ")
    # For models with artifacts, kernels are not looked up.
    entries = list(root.rglob("*.braid")) or list(root.rglob("*.entry"))
    files = {path: path.read_bytes() for path in sorted(entries)}
    for trial in range(trials):
        print(f"trial {trial}", flush=True)
        rng = random.Random(seed + trial)
        restore(root, files)
        if trial % 8 == 7:
            with others(root, files, rng):
                if run() != truth:
                    raise Wrong("another result, with other writers present")
            continue
        loosen(root, rng)
        for path in rng.sample(sorted(files), min(rng.choice([1, 1, 2, len(files)]), len(files))):
            if path.is_file():
                damage(path, files, rng)
        changed = {path for path, data in files.items() if is_other(path, data)}
        if run() != truth:
            raise Wrong("another result")
        command("cache", "verify")
        if not all(path.is_file() for path in changed):
            raise Wrong("an entry was not made again")
        if not is_private(root, files):
            raise Wrong("other users may write to the cache")
        if not changed:
            print("nothing changed", flush=True)


def kernels(directory: Path, trials: int, seed: int) -> None:
    def run() -> dict[str, bytes]:
        out = directory / "out"
        shutil.rmtree(out, ignore_errors=True)
        source = directory / "model.onnx"
        command("run", source, "--random", "--seed", 1, "--jobs", 1, "--output-dir", out)
        return results(out)

    cached(directory, run, trials, seed)


def streams(directory: Path, trials: int, seed: int) -> None:
    def run() -> dict[str, bytes]:
        out = directory / "model.bin"
        source = directory / "model.onnx"
        options = ("--target", "npu-small", "--jobs", 1, "--order-seconds", 0)
        command("compile", source, *options, "-o", out)
        return {"stream": out.read_bytes()}

    cached(directory, run, trials, seed)


def artifacts(directory: Path, trials: int, seed: int) -> None:
    """Whole cached models: two, neither of which is ever returned for the other."""
    os.environ.pop("BRAID_CACHE_LIMIT", None)
    model(directory / "other.onnx", seed=1)

    def run() -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in ("model", "other"):
            artifact, out = directory / f"{name}.braid", directory / "out"
            shutil.rmtree(out, ignore_errors=True)
            command("compile", directory / f"{name}.onnx", "--jobs", 1, "-o", artifact)
            command("run", artifact, "--random", "--seed", 1, "--output-dir", out)
            found |= {f"{name} {key}": data for key, data in results(out).items()}
        return found

    cached(directory, run, trials, seed)


def beside(path: Path, rng: random.Random) -> None:
    """Put files that are not SQLite's, or that it did not write, next to a database."""
    kinds: list[Callable[[Path], object]] = [
        os.mkfifo,
        Path.mkdir,
        lambda other: other.symlink_to(other.name),
        lambda other: other.symlink_to("/dev/zero"),
        lambda other: other.write_bytes(bytes(32768)),
        lambda other: other.write_bytes(rng.randbytes(rng.randint(1, 70000))),
        lambda other: other.write_bytes(b"\x37\x7f\x06\x82" + rng.randbytes(4148)),
    ]
    for end in rng.sample(["-wal", "-shm", "-journal"], rng.randint(1, 3)):
        rng.choice(kinds)(path.with_name(path.name + end))


def refuses(read: Callable[[], object]) -> None:
    try:
        read()
    except BraidError as error:
        if f"belongs to user {NOBODY}" not in error.message:
            raise Wrong(str(error)) from error
    else:
        raise Wrong("a file of another user is read")


def records(directory: Path, trials: int, seed: int) -> None:
    """No record is found that was never measured, and the file is valid again after it."""
    store = default_store()
    assert isinstance(store, FileStore)
    truth = {f"{index:064x}": (index + 1) / 7 for index in range(40)}
    append_records(truth, {key: f"kernel {key}" for key in truth})
    files = {store.path: store.path.read_bytes()}
    for trial in range(trials):
        print(f"trial {trial}", flush=True)
        rng = random.Random(seed + trial)
        for path in store.files():
            remove(path)
        restore(store.path.parent / "none", files)
        way = rng.randrange(4)
        if way == 0:
            beside(store.path, rng)
        elif way < 3:
            damage(store.path, files, rng)
        else:
            a, b = rng.sample(list(truth), 2)
            store.path.write_bytes(files[store.path].replace(a.encode(), b.encode(), 1))
        cache_files._warned.clear()
        if store.path.exists() and store.path.stat().st_uid != os.geteuid():
            refuses(load_records)
            continue
        found = load_records()
        if not found.items() <= truth.items():
            raise Wrong(f"measurements that nobody made: {found.items() - truth.items()}")
        if way == 0 and found != truth:
            raise Wrong("measurements are lost though their file is whole")
        command("cache", "verify")
        append_records({"new": 1.0}, {})
        if load_records() != {**found, "new": 1.0}:
            raise Wrong("after damage, measurements are not kept")
        if trial % 10 == 0:
            source = directory / "model.onnx"
            command("compile", source, "--jobs", 1, "-o", directory / "model.braid")


def profiles(directory: Path, trials: int, seed: int) -> None:
    """Check that a profile only changes decisions: results stay, or a diagnostic names its
    defect."""
    source, path = directory / "model.onnx", directory / "profile.json"

    def run() -> list[np.ndarray] | None:
        artifact, out = directory / "model.braid", directory / "out"
        options = ("--use-profile", path, "--jobs", 1, "-o", artifact)
        status, _ = command("compile", source, *options, may_fail=True)
        if status:
            return None
        shutil.rmtree(out, ignore_errors=True)
        command("run", artifact, "--random", "--seed", 1, "--output-dir", out)
        return [np.load(file) for file in sorted(out.iterdir())]

    command("run", source, "--random", "--jobs", 1, "--profile", path)
    files = {path: path.read_bytes()}
    truth = run()
    if truth is None:
        raise Wrong("an undamaged profile is refused")
    for trial in range(trials):
        print(f"trial {trial}", flush=True)
        rng = random.Random(seed + trial)
        restore(path, files)
        if path.is_dir():
            path.rmdir()
        damage(path, files, rng)
        found = run()
        for actual, expected in zip(found or (), truth, strict=bool(found)):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        if not path.is_file():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> int:
    case, trials, seed, directory = sys.argv[1:]
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    os.environ["BRAID_CACHE_DIR"] = str(root / "cache")
    model(root / "model.onnx")
    cases = {
        "artifacts": artifacts,
        "kernels": kernels,
        "streams": streams,
        "records": records,
        "profiles": profiles,
    }
    try:
        functools.partial(cases[case], root)(int(trials), int(seed))
    except Exception:
        traceback.print_exc()
        return 1
    print(f"{trials} trials")
    return 0


if __name__ == "__main__":
    sys.exit(main())
