"""Runs one model in a separate process with a limit on additional memory.

python -m benchmarks.oversize.child KIND MODEL INPUTS OUTPUT ALLOWANCE

KIND is `braid` (an artifact) or `ort` (an ONNX file). The limit, RLIMIT_DATA, is what the process
takes after its imports and inputs, and ALLOWANCE bytes. Prints one line of JSON: `status` (`ok`,
`out of memory`, `failed`), `growth` (bytes by which the peak of the resident memory grew), and
`message`.
"""

import json
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SIGNS = ("out of memory", "allocat", "bad_alloc", "MemoryError")
"""The texts that messages of failed allocations have in common."""


def memory(field: str) -> int:
    """Return a field of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def run_braid(model: str, inputs: Sequence[Array]) -> Array:
    """Run an artifact on one thread."""
    import braid

    result = braid.load(model)(*inputs)
    assert isinstance(result, np.ndarray)
    return result


def run_ort(model: str, inputs: Sequence[Array]) -> Array:
    """Run an ONNX file on one thread."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


RUNNERS: dict[str, tuple[str, Callable[[str, Sequence[Array]], Array]]] = {
    "braid": ("braid.runtime.model", run_braid),
    "ort": ("onnxruntime", run_ort),
}


def attempt(kind: str, model: str, inputs: Sequence[Array], output: str, allowance: int) -> Any:
    """Return the report on one run."""
    package, run = RUNNERS[kind]
    __import__(package)
    limit = memory("VmData") + allowance
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    Path("/proc/self/clear_refs").write_text("5")  # The peak of resident memory begins anew.
    before = memory("VmRSS")
    try:
        result = run(model, inputs)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        status = "out of memory" if any(sign in text for sign in _SIGNS) else "failed"
        return {"status": status, "growth": None, "message": text.splitlines()[0]}
    growth = memory("VmHWM") - before
    np.save(output, result)
    return {"status": "ok", "growth": growth, "message": ""}


def main() -> None:
    """Read the arguments and prints the report."""
    kind, model, inputs, output, allowance = sys.argv[1:]
    with np.load(inputs) as stored:
        arrays = [stored[name] for name in sorted(stored.files)]
    print(json.dumps(attempt(kind, model, arrays, output, int(allowance))))


if __name__ == "__main__":
    main()
