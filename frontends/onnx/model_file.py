"""Reading a `ModelProto` from a file or from memory, and checking that it is one."""

import mmap
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, inliner

from braid.frontends.onnx.tensors import TensorReader
from braid.frontends.onnx.wire import skeleton
from braid.support.errors import BraidError, SourceLocation, UnsupportedError

_NO_VERSION = 2**31
"""Versions are 32-bit numbers in ONNX's schemas."""


class ModelFile:
    """A model whose large tensors are still in its file.

    `proto` has its local functions inlined; `opset` is the version of the default domain.
    """

    def __init__(self, source: str | Path | ModelProto) -> None:
        if isinstance(source, ModelProto):
            self.location = SourceLocation(source.graph.name or "<model>")
            directory = None
            proto = source
        else:
            path = Path(source)
            self.location = SourceLocation(str(path))
            directory = path.parent
            proto = _read_skeleton(path, self.location)
        self.tensors = TensorReader(directory, self.location)
        _check_is_model(proto, self.location)
        self.opset = _opset(proto, self.location)
        self._opsets = _opsets_by_domain(proto, self.location)
        self.proto = _with_functions_inlined(proto, self.location)

    def opset_of(self, domain: str) -> int:
        """The version of a domain; 1 for one that the model does not say that it uses."""
        return self._opsets.get(domain, 1) if domain else self.opset


def _read_skeleton(path: Path, location: SourceLocation) -> ModelProto:
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        small = skeleton(memoryview(data), path.name)
        proto = ModelProto()
        proto.ParseFromString(small)
        return proto
    except OSError as error:
        raise BraidError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise BraidError("the file is empty", location=location) from error
    except DecodeError as error:
        raise BraidError("not an ONNX model: cannot be decoded", location=location) from error
    except BraidError as error:
        raise BraidError(f"not an ONNX model: {error.message}", location=location) from error


def _check_is_model(proto: ModelProto, location: SourceLocation) -> None:
    if not proto.HasField("graph") or not proto.opset_import:
        missing = "no graph" if not proto.HasField("graph") else "no opset"
        raise BraidError(f"not an ONNX model: it has {missing}", location=location)
    if not proto.graph.output:
        raise BraidError("the model has no outputs", location=location)


def _opsets_by_domain(proto: ModelProto, location: SourceLocation) -> dict[str, int]:
    for entry in proto.opset_import:
        if not 0 <= entry.version < _NO_VERSION:
            raise BraidError(
                f"not an ONNX model: domain '{entry.domain}' has version {entry.version}",
                location=location,
            )
    return {entry.domain: entry.version for entry in proto.opset_import}


def _opset(proto: ModelProto, location: SourceLocation) -> int:
    versions = [o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")]
    newest = onnx.defs.onnx_opset_version()
    opset = versions[0] if versions else newest
    if not 1 <= opset <= newest:
        raise UnsupportedError(
            f"the model uses opset {opset}, expected 1 to {newest}",
            location=location,
            hint="install a newer onnx package",
        )
    return opset


def _with_functions_inlined(proto: ModelProto, location: SourceLocation) -> ModelProto:
    if not proto.functions:
        return proto
    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # the bindings raise RuntimeError and ONNX's own errors
        detail = str(error).splitlines()[0]
        raise BraidError(f"cannot inline the model's functions: {detail}", location=location) from (
            error
        )
