"""Weights in other files, of models that sessions are given as bytes."""

from pathlib import Path

import onnx
from google.protobuf.message import EncodeError

from braid.onnxruntime.config_keys import EXTERNAL_FOLDER
from braid.onnxruntime.errors import Fail

_LOCATION = b"location"
"""The key that every reference to another file has."""


def with_external_data(data: bytes, folder: str) -> bytes | onnx.ModelProto:
    """Return a model with the weights that it has in other files, which are in a folder.

    That is the working directory where none is given, as with ONNX Runtime. The model is bytes
    unless it is too large for them.

    Raises:
        Fail: a file is missing, too short, or outside of the folder.

    """
    if _LOCATION not in data:  # most models: they are not parsed for this
        return data
    model = onnx.load_model_from_string(data)
    place = folder or str(Path.cwd())
    try:
        onnx.load_external_data_for_model(model, place)
    except (onnx.checker.ValidationError, OSError, ValueError) as error:
        raise Fail(
            f"External data path validation failed in '{place}': {error}",
            hint=f"add_session_config_entry('{EXTERNAL_FOLDER}', folder) says where the files are",
        ) from error
    try:
        return model.SerializeToString()
    except (EncodeError, ValueError):  # more than protobuf writes
        return model
