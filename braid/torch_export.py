"""PyTorch modules as models; PyTorch is only needed here."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from typing import Any

import onnx

from braid.support.distribution import install_command
from braid.support.errors import BraidError

_NEWEST_IR = 10


def from_torch(
    module: Any,
    args: Sequence[object] = (),
    *,
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    opset: int | None = None,
) -> onnx.ModelProto:
    """Export a `torch.nn.Module` as an ONNX model, which all functions of braid take.

    ```python
    net = braid.from_torch(module, (torch.randn(2, 8),), dynamic_shapes=({0: "batch"},))
    model = braid.compile(net, shape_bounds={"batch": 8})
    ```

    `args` and `kwargs` are inputs to trace the module with: it is exported as it is in evaluation
    mode, for their types and shapes. `dynamic_shapes` names the dims that stay open, as that of
    `torch.onnx.export` does; `opset` is by default PyTorch's.

    Raises:
        BraidError: PyTorch or onnxscript is missing, or PyTorch cannot export the module.

    """
    torch = _import("torch")
    _import("onnxscript")
    if not isinstance(module, torch.nn.Module):
        raise BraidError(
            f"from_torch was given a {type(module).__name__}, expected a torch.nn.Module"
        )
    try:
        with _evaluating(module), torch.no_grad():
            program = torch.onnx.export(
                module,
                tuple(args),
                kwargs=dict(kwargs or {}),
                dynamic_shapes=dynamic_shapes,
                opset_version=opset,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # the exporter raises whatever its stages do
        raise BraidError(
            f"PyTorch cannot export {type(module).__name__}: {_first_line(error)}",
            hint="torch.onnx.export(…, dynamo=True, report=True) on the same arguments says more",
        ) from error
    proto: onnx.ModelProto = program.model_proto
    proto.ir_version = min(proto.ir_version, _NEWEST_IR)
    return proto


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise BraidError(
            f"from_torch needs {name}: {error}", hint=install_command("torch")
        ) from error


@contextlib.contextmanager
def _evaluating(module: Any) -> Generator[None]:
    """Puts the module and those in it into evaluation mode for a while."""
    training = [inner for inner in module.modules() if inner.training]
    module.eval()
    try:
        yield
    finally:
        for inner in training:
            inner.training = True


def _first_line(error: Exception) -> str:
    """What is wrong, without the exporter's advice; the cause of all causes says it best."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__
