"""Export models with `torch.onnx` so that braid reads them; PyTorch is imported on demand."""

import contextlib
import logging
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

import onnx
from onnx import numpy_helper

from braid.support.distribution import install_command
from braid.support.errors import BraidError

_Result = TypeVar("_Result")
_NEWEST_IR = 10
_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_ARITHMETIC = ("Add", "Sub", "Mul", "Div")
_FLOAT, _INTEGERS = onnx.TensorProto.FLOAT, (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
_NARROW = (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16)
_FLOATS = (*_NARROW, _FLOAT, onnx.TensorProto.DOUBLE)
_NOISY = (
    *(f"torch.onnx._internal.exporter.{name}" for name in ("_registration", "_core", "_compat")),
    *("onnx_ir", "onnxscript"),
)
"""Loggers that report packages that the exporter does not find, and nodes that it does not
change."""


class ExportError(BraidError):
    """PyTorch cannot trace something, or cannot export it."""


_alone = threading.RLock()
_caller_is_alone = ContextVar("caller_is_alone", default=False)


@contextlib.contextmanager
def tracing_alone() -> Generator[None]:
    """Let no other thread trace or export meanwhile, nor TorchDynamo compile.

    All of these change state of the whole process and restore it, which is valid for one thread at
    a time.
    """
    with contextlib.nullcontext() if _caller_is_alone.get() else _tracing_lock():
        yield


def in_fresh_thread(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`, which traces, in a new thread, which has no tracing state.

    If this thread is tracing already, as when TorchDynamo calls compiled code to find constants, it
    waits for the new one, so that only one thread traces.
    """
    is_alone: bool = _tracing_lock()._is_owned()

    def alone() -> _Result:
        _caller_is_alone.set(is_alone)
        return work()

    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(alone).result()


def _tracing_lock() -> Any:
    return getattr(import_package("torch._dynamo.convert_frame"), "compile_lock", _alone)


def run_exporter(name: str, *given: object, hint: str | None = None, **options: object) -> Any:
    """Call `torch.onnx.export` without gradients, and without its chatter.

    `hint` is the way out where that is known before it fails.

    Raises:
        ExportError: it fails, or takes an attribute that changes for a constant; `name` is the
        object that was to be exported.

    """
    torch = import_package("torch")
    try:
        with tracing_alone(), torch.no_grad(), _quiet() as told:
            exported = torch.onnx.export(
                *given,
                **options,
                custom_translation_table=_translations(),
                dynamo=True,
                verbose=False,
            )
            _check_constants(name, exported.exported_program, (str(each.message) for each in told))
            return exported
    except BraidError:
        raise
    except Exception as error:  # the exporter raises whatever its stages do
        raise ExportError(
            f"PyTorch cannot export {name}: {first_line(error)}",
            hint=hint
            or "torch.onnx.export(…, dynamo=True, report=True) on the same arguments says more",
        ) from error


def _check_constants(name: str, program: Any, told: Iterable[str]) -> None:
    """Raise ExportError for a constant of a program that is an attribute that the module assigns.

    PyTorch undoes assignments of a module while it is traced, and only warns.
    """
    assigned = {each for text in told for each in re.findall(r"\bself\.([\w.]+)", text)}
    inputs = program.graph_signature.input_specs
    read = [each.target for each in inputs if each.kind.name == "CONSTANT_TENSOR"]
    if both := [each for each in read if each in assigned]:
        raise ExportError(
            f"{name} assigns the tensor '{both[0]}' that it reads, which a model would not do",
            hint="return the new value as a result, and give it to the next call as an input; "
            "torch.compile(…, backend='braid') assigns as PyTorch does",
        )


_NEW_AXES = {1: ((0,),), 2: ((0, 1), (0,)), 3: ((0, 1, 2), (0, 2), (2,))}
"""The axes that `atleast_1d` to `atleast_3d` add, by the rank of a tensor."""


def _translations() -> dict[Any, Any]:
    """Return replacements for ops that the exporter would turn into sequences, or round."""
    aten, op = import_package("torch").ops.aten, import_package("onnxscript").opset18

    def at_least(rank: int) -> Any:
        def translate(tensors: Any) -> Any:
            return [added(tensor, _NEW_AXES[rank][len(tensor.shape) :]) for tensor in tensors]

        def added(tensor: Any, axes: Sequence[tuple[int, ...]]) -> Any:
            if not axes:
                return op.Identity(tensor)
            return op.Unsqueeze(tensor, op.Constant(value_ints=list(axes[0])))

        return translate

    def log1p(x: Any) -> Any:
        one = op.CastLike(op.Constant(value_float=1.0), x)
        near = op.Add(x, one)  # losses by this are compensated
        between = op.Div(op.Mul(op.Log(near), x), op.Sub(near, one))
        return op.Where(op.Equal(near, one), x, op.Where(op.Equal(near, x), op.Log(near), between))

    return {
        aten.log1p.default: log1p,
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
    """Convert operands to one type in place where the exporter mixes types.

    It folds a BatchNorm into a Conv in f32, whatever the types of both are, and divides floats by
    counts that are integers.
    """
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info)}
    kinds |= {each.name: each.data_type for each in graph.initializer}
    weights = {each.name: each for each in graph.initializer}
    uses = Counter(name for node in graph.node for name in node.input)
    nodes = list[onnx.NodeProto]()
    for node in graph.node:
        data = kinds.get(node.input[0], 0) if node.input else 0
        for place, name in enumerate(node.input[1:], 1):
            if node.op_type in _PRODUCTS and data in _NARROW and kinds.get(name) == _FLOAT:
                if name in weights and uses[name] == 1:
                    weights[name].CopyFrom(_rounded(weights[name], data))
            elif node.op_type in _ARITHMETIC and data in _FLOATS and kinds.get(name) in _INTEGERS:
                cast = f"{node.output[0]}/{name}/cast"
                nodes.append(onnx.helper.make_node("Cast", [name], [cast], to=data))
                node.input[place] = cast
        nodes.append(node)
    if len(nodes) > len(graph.node):
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)


def _rounded(weight: onnx.TensorProto, data_type: int) -> onnx.TensorProto:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(data_type)
    return numpy_helper.from_array(numpy_helper.to_array(weight).astype(dtype), weight.name)


def import_package(name: str) -> Any:
    """Import a package that exporting needs; raises BraidError where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise BraidError(
            f"from_torch needs {name}: {error}", hint=install_command("torch")
        ) from error


@contextlib.contextmanager
def _quiet() -> Generator[list[warnings.WarningMessage]]:
    loggers = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield told
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def evaluating(module: Any) -> Generator[None]:
    """Put the module and those in it into evaluation mode for a while."""
    training = [inner for inner in module.modules() if inner.training]
    module.eval()
    try:
        yield
    finally:
        for inner in training:
            inner.training = True


def leaves(tree: Any, roots: Sequence[str] = ("args", "kwargs")) -> dict[str, Any]:
    """Return all that nested containers hold by where it is, such as `args[0]['a']`.

    The first index is that of a name in `roots`, where there are some.
    """
    pytree = import_package("torch").utils._pytree
    pairs = pytree.tree_flatten_with_path(tree)[0]
    if not roots:
        return {pytree.keystr(path): leaf for path, leaf in pairs}
    return {roots[path[0].idx] + pytree.keystr(path[1:]): leaf for path, leaf in pairs}


def said(value: object) -> str:
    """Return a value as messages name it, other ones than numbers and text by their type."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return f"{value!r:.200}"
    return f"of type {type(value).__name__}"


def first_line(error: Exception) -> str:
    """Return the error, without the exporter's advice; the innermost cause is the best message.

    A line that ends in a colon only announces the next.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    ends = (n for n, line in enumerate(lines) if not line.rstrip().endswith(":"))
    return " ".join(line.strip() for line in lines[: next(ends, 0) + 1])
