"""Cases of ``benchmarks.gpu`` that are compiled on one machine and run on another one."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import braid
from benchmarks.gpu_case import Array, Case
from benchmarks.kept_cases import read_arrays
from braid.support.errors import BraidError

ROWS = 64
"""The most elements of each result of a model that are kept for comparison."""


def path_of(folder: Path, case: Case) -> Path:
    """Return the path of the artifact of a case."""
    return folder / f"{re.sub('[^A-Za-z0-9_.]+', '_', case.name)}.braid"


def save(
    folder: Path, case: Case, model: braid.Model, source: Any, inputs: Sequence[Array]
) -> None:
    """Keep the artifact and, for a whole model, its inputs and expected results."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, case)
    model.save(path)
    if case.make is not None:
        wanted = expected_of_model(case, source, inputs)
        arrays: dict[str, Any] = {f"input{i}": array for i, array in enumerate(inputs)}
        arrays |= {f"result{i}": sampled_rows(array) for i, array in enumerate(wanted)}
        np.savez_compressed(path.with_suffix(".npz"), **arrays)


def load(folder: Path, case: Case) -> braid.Model:
    """Return what `save` has kept. Raises `BraidError` where there is nothing of it."""
    return braid.load(path_of(folder, case))


def kept_arrays(folder: Path, case: Case, kind: str, count: int) -> list[Array]:
    """Return `count` arrays `input` or `result` that were kept with a model.

    Raises `BraidError` where they are not there.
    """
    path = path_of(folder, case).with_suffix(".npz")
    kept = read_arrays(path)
    try:
        return [kept[f"{kind}{i}"] for i in range(count)]
    except KeyError as error:
        raise BraidError(f"'{path}' is not of this model: {error}") from None


def expected_of_model(case: Case, source: onnx.ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Return ONNX Runtime's results for a model, in f32 if the case is one of f16."""
    import onnxruntime

    if case.element != "f32" and case.exact is not None:
        source = case.exact()
        inputs = [one.astype(np.float32) if one.dtype.kind == "f" else one for one in inputs]
    session: Any = onnxruntime.InferenceSession(source.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    results = session.run(None, dict(zip(names, inputs, strict=True)))
    return [np.asarray(result) for result in results]


def sampled_rows(array: Array) -> Array:
    """Return some of the rows along the last dim, the first and the last among them."""
    rows = array.reshape(-1, array.shape[-1] if array.ndim else 1)
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(int))]
