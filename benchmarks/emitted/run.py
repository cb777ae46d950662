"""Running cases, in this process or in several."""

import re
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.emitted.cases import DSPS, FLOATS, Case, digest_of, source_of
from benchmarks.emitted.code import digest, emitted, emitted_floats
from benchmarks.emitted.isolation import hide_processor
from benchmarks.emitted.record import Emitted

Outcome = tuple[Case, Emitted | str]
"""A case with its emitted files, or the traceback of a crash."""


def run_cases(
    cases: Sequence[Case], models: Path | None, keep: Path | None, jobs: int
) -> Iterator[Outcome]:
    """Run cases in `jobs` processes, in the order in which they end; in this one if `jobs` is 1."""
    run = partial(run_case, models=models, keep=keep)
    if jobs == 1:
        hide_processor()
        yield from map(run, cases)
        return
    # Spawned: a child begins without what this process has imported and cached.
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=hide_processor) as pool:
        yield from pool.map(run, cases)


def run_case(case: Case, models: Path | None, keep: Path | None) -> Outcome:
    """Return what a case emits; the files themselves go to a folder in `keep`."""
    try:
        if case.target == FLOATS:
            source, files = "", emitted_floats(case.model, DSPS)
        else:
            model = source_of(case.model, models)
            source = digest_of(model)
            files = emitted(model, case.target, case.cpu, compiled=case.compiled)
    except Exception:  # the others still run
        return case, traceback.format_exc()
    if keep is not None:
        _write(keep / _file_name(str(case)), dict(files))
    return case, Emitted(source, {name: digest(data) for name, data in files})


def _write(folder: Path, files: dict[str, str | bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        content = data.encode() if isinstance(data, str) else data
        (folder / _file_name(name)).write_bytes(content)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
