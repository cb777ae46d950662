"""What PyTorch takes on a GPU for the cases of ``benchmarks.gpu``: cuBLAS, cuDNN, Triton.

PyTorch need not be installed, and without a GPU nothing is measured. Products and convolutions of
f32 are exact (`exact`) unless braid may round them to tf32 too.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.gpu_case import Array

Function = Callable[..., Any]
COMPILED = "torch.compile"


def available() -> bool:
    """Whether PyTorch and a GPU are there."""
    if importlib.util.find_spec("torch") is None:
        return False
    torch: Any = importlib.import_module("torch")
    return bool(torch.cuda.is_available())


def library_seconds(kind: str, inputs: Sequence[Array], runs: int, exact: bool) -> dict[str, float]:
    """The least time of PyTorch's own operator, by the device's events."""
    torch = _torch(exact)
    found = _function(torch, kind)
    return {} if found is None else _seconds(torch, *found, kind, inputs, runs)


def compiled_seconds(
    kind: str, inputs: Sequence[Array], runs: int, exact: bool
) -> dict[str, float]:
    """That of the same by ``torch.compile``, which takes long to search kernels of Triton."""
    torch = _torch(exact)
    found = _function(torch, kind)
    if found is None:
        return {}
    function = torch.compile(found[1], mode="max-autotune-no-cudagraphs")
    return _seconds(torch, COMPILED, function, kind, inputs, runs)


def model_seconds(name: str, runs: int, exact: bool) -> dict[str, float]:
    """That of a model of `benchmarks.models` by ``torch.compile``; nothing for one of ONNX alone.

    Launches are CUDA graphs, as braid's are.
    """
    if importlib.util.find_spec("transformers") is None:
        return {}
    torch = _torch(exact)
    models = importlib.import_module("benchmarks.models.torch_models").MODELS
    if name not in models:
        return {}
    make_module, make_inputs = models[name]
    with torch.no_grad():
        module = torch.compile(make_module().eval().cuda(), mode="reduce-overhead")
        inputs = [tensor.cuda() for tensor in make_inputs()]
        return {COMPILED: _least(torch, lambda: module(*inputs), runs)}


def _torch(exact: bool) -> Any:
    torch: Any = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = not exact
    torch.backends.cudnn.allow_tf32 = not exact
    return torch


def _function(torch: Any, kind: str) -> tuple[str, Function] | None:
    """What computes a kind of case, and whose kernels that takes."""
    functional = torch.nn.functional
    known: dict[str, tuple[str, Function]] = {
        "product": ("cuBLAS", lambda a, b: _product(torch, a, b)),
        "linear": ("cuBLAS", lambda a, b, c: torch.tanh(torch.addmm(c[0], a, b))),
        "conv": ("cuDNN", functional.conv2d),
        "depthwise": ("cuDNN", lambda a, b: functional.conv2d(a, b, groups=a.shape[1])),
        "attention": ("torch", lambda q, k, v: _attention(torch, q, k, v)),
        "softmax": ("torch", lambda a: torch.softmax(a, 1)),
        "tanh": ("torch", torch.tanh),
        "layer_norm": (
            "torch",
            lambda a, b, c: functional.layer_norm(a, a.shape[1:], b[0], c[0]),
        ),
        "transpose": ("torch", lambda a: a.t().contiguous()),
        "concat": ("torch", lambda a, b: torch.cat((a, b), 1)),
        "gather": ("torch", lambda a, b: a[b]),
        "reduce": ("torch", lambda a: torch.amax(a, 1, keepdim=True)),
        "pool": ("torch", lambda a: functional.max_pool2d(a, 2)),
        "resize": ("torch", lambda a: functional.interpolate(a, scale_factor=2, mode="nearest")),
    }
    return known.get(kind)


def _product(torch: Any, a: Any, b: Any) -> Any:
    return torch._int_mm(a, b) if a.dtype == torch.int8 else a @ b


def _attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    """By cuDNN or FlashAttention; the keys come transposed."""
    own = (q.unsqueeze(0), k.transpose(1, 2).unsqueeze(0), v.unsqueeze(0))
    return torch.nn.functional.scaled_dot_product_attention(*own, scale=1.0)


def _tensor(torch: Any, array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).cuda()
    return torch.from_numpy(array).cuda()


def _seconds(
    torch: Any, name: str, function: Function, kind: str, inputs: Sequence[Array], runs: int
) -> dict[str, float]:
    tensors = [_tensor(torch, array) for array in inputs]
    if kind in ("conv", "depthwise"):
        tensors = [tensor.to(memory_format=torch.channels_last) for tensor in tensors]
    try:
        return {name: _least(torch, lambda: function(*tensors), runs)}
    except RuntimeError:  # it has no kernel for that
        return {}


def _least(torch: Any, run: Callable[[], Any], runs: int) -> float:
    for _ in range(3):
        run()
    times: list[float] = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return min(times)
