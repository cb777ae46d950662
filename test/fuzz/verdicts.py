"""Verdicts of onnx's checker and ONNX Runtime on a model, in a process that may crash.

Some invalid models crash either of them.
"""

import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

Arrays = list[Any]

_SILENT = re.compile("Field 'shape' of 'type' is required but missing")
"""Of outputs, whose shapes the models do not declare."""

_NO_KERNEL = (
    "NotImplemented",
    "NOT_IMPLEMENTED",
    "can't be converted to MLDataType",
    "No corresponding Numpy type",
    "is not a registered function/op",
    "not supported",
)
"""ONNX Runtime lacks some types of some ops; that is no verdict about the model."""


@dataclass(frozen=True)
class Verdict:
    """The reason why each rejects a model; empty if it does not."""

    checker: str
    runtime: str

    @property
    def is_invalid(self) -> bool:
        """Return whether both reject the model."""
        return bool(self.checker and self.runtime)


class Judge:
    """A process that gives verdicts, restarted when it has crashed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def verdict(self, model: bytes, inputs: Arrays) -> Verdict:
        """Return both verdicts; a model that crashes the process is rejected by neither."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        given, said = self._process.stdin, self._process.stdout
        assert given is not None and said is not None
        try:
            pickle.dump((model, inputs), given)
            given.flush()
            return Verdict(*pickle.load(said))
        except (EOFError, OSError):
            self.close()
            return Verdict("", "")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _checker(model: bytes) -> str:
    import onnx

    proto = onnx.ModelProto.FromString(model)
    try:
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        return "" if _SILENT.search(text) else text
    return ""


def _runtime(model: bytes, inputs: Arrays) -> str:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model, options)
        names = [value.name for value in session.get_inputs()]
        session.run(None, dict(zip(names, inputs, strict=False)))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return "" if any(part in text for part in _NO_KERNEL) else text
    return ""


def main() -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    while True:
        try:
            model, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        checker = _checker(model)
        pickle.dump((checker, _runtime(model, inputs) if checker else ""), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
