"""Other runtimes that run the same cases, if they are installed.

A peer gets a model and the inputs of one data set in order, and gives the outputs in order. IREE
and torch-mlir share their importer of ONNX; torch-mlir's way from there to machine code is that of
its reference backend, with upstream's execution engine.
"""

import ctypes
import importlib.util
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, version_converter
from onnx.reference import ReferenceEvaluator

from benchmarks.conformance.cases import Arrays, is_static
from braid.support.errors import UnsupportedError

IMPORTER_OPSET = 17
"""Older models are converted first, as the importers' own tools do."""

NEEDED = {
    "ort": ("onnxruntime",),
    "iree": ("iree.compiler", "iree.runtime"),
    "torch-mlir": ("torch_mlir.extras.onnx_importer", "torch_mlir.execution_engine"),
}
"""The modules that a peer is made of."""

_TO_LINALG = (
    "builtin.module(torch-onnx-to-torch-backend-pipeline{backend-legal-ops="
    "aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)
_TO_LLVM = (
    "builtin.module(convert-shape-to-std,func.func(tm-tensor-bufferize),"
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions=true hoist-static-allocs=true},"
    "func.func(tm-tensor-to-loops),func.func(refback-munge-memref-copy),"
    "func.func(convert-linalg-to-loops),lower-affine,"
    "convert-scf-to-cf,func.func(arith-expand),func.func(convert-math-to-llvm),"
    "convert-math-to-libm,expand-strided-metadata,finalize-memref-to-llvm,lower-affine,"
    "convert-arith-to-llvm,convert-vector-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,"
    "convert-index-to-llvm,reconcile-unrealized-casts)"
)


def missing_module(peer: str) -> str | None:
    """Return the first module that the peer needs and that is not installed."""
    return next((name for name in NEEDED.get(peer, ()) if not _is_installed(name)), None)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def input_names(model: ModelProto) -> list[str]:
    """Return the inputs that a caller gives: old models list their weights among the inputs too."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in initialized]


def by_onnx_runtime(model: ModelProto, inputs: Arrays) -> Arrays:
    from onnxruntime import InferenceSession

    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def by_reference(model: ModelProto, inputs: Arrays) -> Arrays:
    names = input_names(model)
    return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))


def by_iree(model: ModelProto, inputs: Arrays) -> Arrays:
    from iree.compiler import ir, tools
    from iree.compiler.extras import onnx_importer
    from iree.runtime import Config, VmModule, load_vm_module

    with ir.Context() as context:
        module, _ = _imported(onnx_importer, context, _converted(model))
        text = module.operation.get_asm()
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    flags.append("--iree-llvmcpu-target-cpu=host")
    code = tools.compile_str(text, input_type="onnx", extra_args=flags)
    config: Any = Config("local-sync")
    loaded: Any = VmModule.copy_buffer(config.vm_instance, code)
    (entry,) = [n for n in loaded.function_names if not n.startswith("__") and "$" not in n]
    results = load_vm_module(loaded, config)[entry](*inputs)
    values = results if isinstance(results, (tuple, list)) else [results]
    return [value.to_host() for value in values]


def by_torch_mlir(model: ModelProto, inputs: Arrays) -> Arrays:
    from torch_mlir import ir
    from torch_mlir.dialects import torch
    from torch_mlir.execution_engine import ExecutionEngine
    from torch_mlir.extras import onnx_importer
    from torch_mlir.passmanager import PassManager
    from torch_mlir.runtime import get_ranked_memref_descriptor

    outputs = [_empty(value) for value in model.graph.output]
    with ir.Context() as context:
        torch.register_dialect(context)
        module, function = _imported(onnx_importer, context, _converted(model))
        PassManager.parse(_TO_LINALG).run(module.operation)
        for op in module.body.operations:
            if op.operation.name == "func.func":
                op.operation.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        PassManager.parse(_TO_LLVM).run(module.operation)
        engine = ExecutionEngine(module, opt_level=0)
        arrays = [np.ascontiguousarray(x).reshape(x.shape) for x in inputs] + outputs
        descriptors = [ctypes.pointer(get_ranked_memref_descriptor(array)) for array in arrays]
        engine.invoke(function, *(ctypes.pointer(pointer) for pointer in descriptors))
    return outputs


def _converted(model: ModelProto) -> ModelProto:
    opsets = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if opsets and opsets[0] < IMPORTER_OPSET:
        return version_converter.convert_version(model, IMPORTER_OPSET)
    return model


def _imported(importer: Any, context: Any, model: ModelProto) -> tuple[Any, str]:
    """Return the model in the `torch` dialect, and the name of its function."""
    info = importer.ModelInfo(model)
    module = info.create_module(context=context)
    importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    return module, model.graph.name


def _empty(value: Any) -> Any:
    """Return an array for an output. Raises UnsupportedError for one without a static tensor
    type."""
    if not is_static(value):
        raise UnsupportedError(f"output '{value.name}' has no static shape")
    tensor = value.type.tensor_type
    if tensor.elem_type == TensorProto.STRING:
        raise UnsupportedError("strings")
    shape = [dim.dim_value for dim in tensor.shape.dim]
    return np.empty(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
