"""The runtimes: each loads a model and runs it on a number of threads."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.models.compare import Candidate
from benchmarks.models.inputs import random_inputs

Array = NDArray[Any]
Inputs = Mapping[str, Array]

VARIANTS = ("f16", "bf16", "int8")

BF16 = np.dtype(ml_dtypes.bfloat16)

IREE_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-opt-level=O3",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-data-tiling",
    "--iree-llvmcpu-stack-allocation-limit=262144",
)


def load_braid(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """Compile by braid twice: the first time may find no kernels in the cache, the second does."""
    import braid

    start = time.perf_counter()
    braid.compile(path, threads=threads, cache=False)
    first = time.perf_counter() - start
    start = time.perf_counter()
    model = braid.compile(path, threads=threads, cache=False)
    warm = time.perf_counter() - start
    ordered = [inputs[spec.name] for spec in model.inputs]
    details = {"warm_compile_seconds": warm, "arena_bytes": float(model.arena_bytes)}
    return Candidate("braid", lambda: model.run(ordered), first, details)


def load_own_f32(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """Load braid on the f32 model from which `MODEL_f16.onnx`, `_bf16` or `_int8` was made.

    Raises ValueError if there is none.
    """
    name, _, kind = path.stem.rpartition("_")
    original = path.with_stem(name)
    if kind not in VARIANTS or not original.exists():
        raise ValueError("it is no variant of an f32 model in the same directory")
    own = load_braid(original, random_inputs(original), threads)
    return replace(own, name="braid-f32")


def load_ort(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """ONNX Runtime with all its optimizations."""
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    start = time.perf_counter()
    session: Any = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return Candidate(
        "ort", lambda: session.run(None, dict(inputs)), time.perf_counter() - start, {}
    )


def has_halves(path: Path) -> bool:
    """Return whether weights are in bf16, which not every runtime multiplies as such by itself."""
    weights = onnx.load(path, load_external_data=False).graph.initializer
    return any(weight.data_type == onnx.TensorProto.BFLOAT16 for weight in weights)


def load_openvino(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """OpenVINO's CPU device, for the latency of one request; bf16 for models in it, else f32."""
    import openvino  # pyright: ignore

    config = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": str(threads),
        "INFERENCE_PRECISION_HINT": "bf16" if has_halves(path) else "f32",
    }
    start = time.perf_counter()
    compiled: Any = openvino.Core().compile_model(str(path), "CPU", config)
    request = compiled.create_infer_request()
    given = {name: as_openvino(value) for name, value in inputs.items()}

    def result(index: int) -> Array:
        tensor = request.get_output_tensor(index)
        return tensor.data.view(BF16) if tensor.element_type.to_string() == "bf16" else tensor.data

    def run() -> list[Array]:
        request.infer(given, share_inputs=True)
        return [result(index) for index in range(len(compiled.outputs))]

    return Candidate("openvino", run, time.perf_counter() - start, {})


def as_openvino(value: Array) -> Any:
    """Return what OpenVINO takes for an array; it does not know the package of numpy's bf16."""
    import openvino  # pyright: ignore

    if value.dtype != BF16:
        return value
    return openvino.Tensor(value.view(np.uint16), value.shape, openvino.Type.bf16)


def load_torch(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """torch.compile on the module that the model was exported from, with weights frozen.

    Raises KeyError for models that are not of `torch_models`.
    """
    import torch
    import torch._inductor.config as inductor

    from benchmarks.models.torch_models import MODELS, with_weights

    inductor.freezing = True
    torch.set_num_threads(threads)
    name, _, kind = path.stem.rpartition("_")
    name, dtype = {"f16": (name, torch.float16), "bf16": (name, torch.bfloat16)}.get(
        kind, (path.stem, torch.float32)
    )
    module = with_weights(MODELS[name][0], dtype)
    given = [as_torch(value) for value in inputs.values()]
    start = time.perf_counter()
    with torch.inference_mode():
        compiled: Any = torch.compile(module)
        compiled(*given)
    seconds = time.perf_counter() - start

    def run() -> list[Array]:
        with torch.inference_mode():
            results = compiled(*given)
        values = results if isinstance(results, tuple | list) else [results]
        return [as_numpy(value) for value in values]

    return Candidate("torch", run, seconds, {})


def as_torch(value: Array) -> Any:
    """Return the array as a tensor on the same memory; PyTorch does not know numpy's bf16."""
    import torch

    if value.dtype != BF16:
        return torch.from_numpy(value)
    return torch.from_numpy(value.view(np.uint16)).view(torch.bfloat16)


def as_numpy(tensor: Any) -> Array:
    """Return the tensor as an array on the same memory."""
    import torch

    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.uint16).numpy().view(BF16)


def load_iree(path: Path, inputs: Inputs, threads: int = 1) -> Candidate:
    """IREE, imported and compiled by its own tools, on its local device."""
    import iree.compiler as compiler  # pyright: ignore
    import iree.runtime as runtime  # pyright: ignore

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        module_path = Path(directory) / "model.mlir"
        tool = "iree.compiler.tools.import_onnx"
        command = [sys.executable, "-m", tool, str(path), "-o", str(module_path)]
        subprocess.run(command, check=True, capture_output=True)
        code: Any = compiler.tools.compile_file(  # pyright: ignore
            str(module_path), input_type="onnx", extra_args=list(IREE_FLAGS)
        )
    if threads != 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")  # pyright: ignore
    config: Any = runtime.Config(  # pyright: ignore
        "local-sync" if threads == 1 else "local-task"
    )
    module: Any = runtime.VmModule.copy_buffer(config.vm_instance, code)  # pyright: ignore
    context: Any = runtime.load_vm_module(module, config)  # pyright: ignore
    # The entry is named after the graph; there is one besides its asynchronous twin.
    names = [n for n in module.function_names if not n.startswith("__") and "$" not in n]
    entry: Any = context[names[0]]
    seconds = time.perf_counter() - start

    def run() -> list[Array]:
        results = entry(*inputs.values())
        values = results if isinstance(results, tuple | list) else [results]
        return [value.to_host() for value in values]

    return Candidate("iree", run, seconds, {})


PEERS: dict[str, Callable[[Path, Inputs, int], Candidate]] = {
    "braid": load_braid,
    "braid-f32": load_own_f32,
    "ort": load_ort,
    "openvino": load_openvino,
    "iree": load_iree,
    "torch": load_torch,
}
"""Runtimes by name."""
