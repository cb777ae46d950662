"""What `torch.onnx` exports, as models that braid reads; PyTorch is imported when it is needed."""

import contextlib
import logging
import warnings
from collections.abc import Generator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from braid.support.distribution import install_command
from braid.support.errors import BraidError

_NEWEST_IR = 10
_NOISY = "torch.onnx._internal.exporter._registration"
"""The logger that tells of every package that the exporter would know and does not find."""


class ExportError(BraidError):
    """PyTorch cannot trace something, or cannot export it."""


def run_exporter(name: str, *given: object, **options: object) -> Any:
    """Call `torch.onnx.export` without gradients, and without its chatter.

    Raises:
        ExportError: it fails; `name` is what was to be exported.

    """
    torch = import_package("torch")
    try:
        with torch.no_grad(), _quiet():
            return torch.onnx.export(
                *given,
                **options,
                custom_translation_table=_translations(),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # the exporter raises whatever its stages do
        raise ExportError(
            f"PyTorch cannot export {name}: {first_line(error)}",
            hint="torch.onnx.export(…, dynamo=True, report=True) on the same arguments says more",
        ) from error


_NEW_AXES = {1: ((0,),), 2: ((0, 1), (0,)), 3: ((0, 1, 2), (0, 2), (2,))}
"""Which axes `atleast_1d` to `atleast_3d` add, by the rank of a tensor."""


def _translations() -> dict[Any, Any]:
    """What the exporter would make sequences of, for ops that give tensors a least rank."""
    aten, op = import_package("torch").ops.aten, import_package("onnxscript").opset18

    def at_least(rank: int) -> Any:
        def translate(tensors: Any) -> Any:
            return [added(tensor, _NEW_AXES[rank][len(tensor.shape) :]) for tensor in tensors]

        def added(tensor: Any, axes: Sequence[tuple[int, ...]]) -> Any:
            if not axes:
                return op.Identity(tensor)
            return op.Unsqueeze(tensor, op.Constant(value_ints=list(axes[0])))

        return translate

    return {
        aten.atleast_1d.Sequence: at_least(1),
        aten.atleast_2d.Sequence: at_least(2),
        aten.atleast_3d.Sequence: at_least(3),
    }


def proto_of(exported: Any) -> onnx.ModelProto:
    """Return the ONNX model of an `ONNXProgram`, in a version of the format that braid reads."""
    proto: onnx.ModelProto = exported.model_proto
    proto.ir_version = min(proto.ir_version, _NEWEST_IR)
    _unify_types(proto.graph)
    return proto


def _unify_types(graph: onnx.GraphProto) -> None:
    """Round weights in f32 where the same op has its data in a narrower float, in place.

    The exporter folds a BatchNorm into a Conv in f32, whatever the types of both are.
    """
    types = {
        each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.value_info)
    }
    weights = {each.name: each for each in graph.initializer}
    uses: dict[str, int] = {}
    for node in graph.node:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    narrow = (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16)
    for node in graph.node:
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            continue
        data = types.get(node.input[0], onnx.TensorProto.UNDEFINED)
        for name in node.input[1:] if data in narrow else ():
            weight = weights.get(name)
            if weight is None or weight.data_type != onnx.TensorProto.FLOAT or uses[name] > 1:
                continue
            dtype = onnx.helper.tensor_dtype_to_np_dtype(data)
            rounded = np.asarray(numpy_helper.to_array(weight)).astype(dtype)
            weight.CopyFrom(numpy_helper.from_array(rounded, name))


def import_package(name: str) -> Any:
    """Import a package that exporting needs; raises BraidError where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise BraidError(
            f"from_torch needs {name}: {error}", hint=install_command("torch")
        ) from error


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    logger = logging.getLogger(_NOISY)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def evaluating(module: Any) -> Generator[None]:
    """Puts the module and those in it into evaluation mode for a while."""
    training = [inner for inner in module.modules() if inner.training]
    module.eval()
    try:
        yield
    finally:
        for inner in training:
            inner.training = True


def first_line(error: Exception) -> str:
    """What is wrong, without the exporter's advice; the cause of all causes says it best."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__
