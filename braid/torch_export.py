"""PyTorch modules and exported programs as models; PyTorch is only needed here."""

import contextlib
import logging
import warnings
from collections.abc import Generator, Mapping, Sequence
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


def from_torch(
    module: Any,
    args: Sequence[object] = (),
    *,
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    opset: int | None = None,
    verify: bool = True,
) -> onnx.ModelProto:
    """Export a `torch.nn.Module` or an `ExportedProgram` as an ONNX model.

    All functions of braid take the result.

    ```python
    net = braid.from_torch(module, (torch.randn(2, 8),), dynamic_shapes=({0: "batch"},))
    model = braid.compile(net, shape_bounds={"batch": 8})
    ```

    `args` and `kwargs` are inputs to trace the module with: it is exported as it is in evaluation
    mode, for their types and shapes. `dynamic_shapes` names the dims that stay open, as that of
    `torch.onnx.export` does; `opset` is by default PyTorch's. A program of `torch.export.export`
    has its shapes and, unless others are given, its example inputs already.

    Unless `verify` is False, the model is interpreted once on these inputs, and compared with what
    PyTorch computes: `torch.onnx` exports several ops to something else. Nothing is compared where
    results are random, or where braid has not all ops of the model, of which `compile` then tells.

    Raises:
        BraidError: PyTorch or onnxscript is missing, PyTorch cannot export the module, or what it
            exports computes something else; the message names the op.

    """
    torch = _import("torch")
    _import("onnxscript")
    if isinstance(module, torch.export.ExportedProgram):
        exported, args, kwargs = _of_program(module, args, kwargs, dynamic_shapes, opset)
    elif isinstance(module, torch.nn.Module):
        with evaluating(module):
            exported = run_exporter(
                type(module).__name__,
                module,
                tuple(args),
                kwargs=dict(kwargs or {}),
                dynamic_shapes=dynamic_shapes,
                opset_version=opset,
            )
    else:
        raise BraidError(
            f"from_torch was given a {type(module).__name__}, expected a torch.nn.Module or an "
            "ExportedProgram",
            hint="give functions as a module whose forward calls them",
        )
    proto = proto_of(exported)
    if verify:
        from braid.torch_comparison import check_export  # which needs the interpreter

        check_export(module, exported.exported_program, proto, tuple(args), dict(kwargs or {}))
    return proto


def _of_program(
    program: Any,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None,
    dynamic_shapes: object,
    opset: int | None,
) -> tuple[Any, Sequence[object], Mapping[str, object]]:
    """Export a program; return that with the inputs to compare it on."""
    if dynamic_shapes is not None:
        raise BraidError(
            "dynamic_shapes is given for an ExportedProgram, which has open dims of its own",
            hint="give dynamic_shapes to torch.export.export",
        )
    if not args and not kwargs and program.example_inputs is not None:
        args, kwargs = program.example_inputs
    exported = run_exporter("the program", program, opset_version=opset)
    return exported, args, kwargs or {}


def run_exporter(name: str, *given: object, **options: object) -> Any:
    """Call `torch.onnx.export` without gradients, and without its chatter.

    Raises:
        ExportError: it fails; `name` is what was to be exported.

    """
    torch = _import("torch")
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
    aten, op = _import("torch").ops.aten, _import("onnxscript").opset18

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


def _import(name: str) -> Any:
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
