"""From the arguments of a session to a compiled model, with the file's metadata."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from braid.driver.compile import compile_or_load
from braid.onnxruntime.element_types import type_text
from braid.onnxruntime.errors import NotImplementedStatus, WrongTypeError
from braid.onnxruntime.external_data import with_external_data
from braid.onnxruntime.node_args import ModelMetadata, NodeArg, described, read_header
from braid.onnxruntime.refusals import refused_model
from braid.onnxruntime.session_options import SessionOptions
from braid.onnxruntime.wrong_options import wrong_option
from braid.runtime.artifact import artifact_of_bytes
from braid.runtime.dtypes import dtype_name
from braid.runtime.model import Model, load, model_of
from braid.support.errors import BraidError
from braid.support.model_bytes import ARTIFACT_MAGIC
from braid.support.option_names import naming_entries


@dataclass(frozen=True)
class Opened:
    """A model that can run, and the author's metadata about it, its inputs and its outputs."""

    model: Model
    inputs: Sequence[NodeArg]
    outputs: Sequence[NodeArg]
    overridable: Sequence[NodeArg] = ()
    metadata: ModelMetadata = field(default_factory=ModelMetadata)


def open_model(given: object, options: SessionOptions) -> Opened:
    """Compile an ONNX model, or load its cached artifact, or an artifact.

    Raises:
        OrtError: as `InferenceSession`.

    """
    source = _source(given)
    if _is_artifact(source):
        threads = options.compile_options().threads
        with _refusing():
            if isinstance(source, Path):
                model = load(source, threads=threads)
            else:
                artifact = artifact_of_bytes(source, "<bytes>")
                model = model_of(artifact, artifact, threads)
        kinds = model.boundary
        outputs = described(model.outputs, kinds.outputs, is_output=True)
        return Opened(model, described(model.inputs, kinds.inputs), outputs)
    return _compiled(source, options)


def _is_artifact(source: Path | bytes) -> bool:
    if isinstance(source, Path):
        return source.suffix == ".braid"
    return source.startswith(ARTIFACT_MAGIC)


@contextmanager
def _refusing() -> Generator[None]:
    """Raise ONNX Runtime's exceptions if a model is refused in the block.

    Messages name options as those of sessions.
    """
    try:
        with naming_entries():
            yield
    except BraidError as error:
        raise refused_model(error) from error


def _compiled(source: Path | bytes, options: SessionOptions) -> Opened:
    header = read_header(source)
    compile_options = options.compile_options(header.open_dims())
    folder = options.external_folder
    if isinstance(source, Path) and (source.suffix.lower() != ".onnx" or folder):
        folder = folder or str(source.parent)
        source = source.read_bytes()  # braid goes by suffixes, ONNX Runtime takes any
    model_source = with_external_data(source, folder) if isinstance(source, bytes) else source
    with _refusing():
        try:
            model = compile_or_load(model_source, compile_options)
        except BraidError as error:
            wrong = wrong_option(model_source, compile_options, options.entries, error)
            raise wrong or error from error
    return Opened(
        model,
        header.inputs(model.inputs, model.boundary.inputs),
        header.outputs(model.outputs, model.boundary.outputs),
        header.overridable(lambda number: type_text(dtype_name(number))),
        header.metadata,
    )


def _source(given: object) -> Path | bytes:
    if isinstance(given, bytes):
        return given
    if not isinstance(given, str | os.PathLike):
        raise WrongTypeError(
            f"Unable to load from type '{type(given)}'",
            hint="give the path of a model, or its bytes",
        )
    path = Path(os.fspath(cast("str | os.PathLike[str]", given)))
    if path.suffix == ".ort":
        raise NotImplementedStatus(
            f"'{path}' is in ONNX Runtime's own format",
            hint="give the .onnx model that it was made of",
        )
    return path
