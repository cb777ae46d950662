"""PyTorch modules and exported programs as models; PyTorch is only needed here."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from braid.support.checked_keywords import checks_arguments
from braid.support.errors import BraidError
from braid.torch_exporter import evaluating, import_package, proto_of, run_exporter


@checks_arguments("braid.from_torch")
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
    torch = import_package("torch")
    import_package("onnxscript")
    _check_examples(args, kwargs)
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
                hint=None if args or kwargs else "give inputs to trace it with: args=(x,)",
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


def _check_examples(args: object, kwargs: object) -> None:
    """Raise BraidError for example inputs that are no tuple, or no mapping by name."""
    if not isinstance(args, tuple | list):
        raise BraidError(
            f"args is a {type(args).__name__}, expected a tuple of example inputs",
            hint="such as (x,), also for one input",
        )
    if not isinstance(kwargs, Mapping | None):
        raise BraidError(
            f"kwargs is a {type(kwargs).__name__}, expected example inputs by name",
            hint="such as kwargs={'x': x}",
        )


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
