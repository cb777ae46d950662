"""Time PyTorch on a GPU on the cases of ``benchmarks.gpu``: cuBLAS, cuDNN, Triton.

PyTorch need not be installed, and without a GPU nothing is measured. Products and convolutions of
f32 are exact (`exact`) unless braid may round them to tf32 too.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.gpu_case import DTYPES, TOP, Case
from braid.runtime.dtypes import numpy_dtype

Function = Callable[..., Any]
Run = Callable[[], Any]
COMPILED = "torch.compile"
COPY = "copy"


def available() -> bool:
    """Return whether PyTorch and a GPU are there."""
    if importlib.util.find_spec("torch") is None:
        return False
    torch: Any = importlib.import_module("torch")
    return bool(torch.cuda.is_available())


def import_torch(exact: bool) -> Any:
    """PyTorch, whose products and convolutions of f32 are `exact`, or of tf32."""
    torch: Any = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = not exact
    torch.backends.cudnn.allow_tf32 = not exact
    torch.backends.cudnn.benchmark = True
    return torch


def describe(torch: Any) -> dict[str, str]:
    """Return the GPU, and the libraries that PyTorch brings."""
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()),
    }


def dtype_of(torch: Any, name: str) -> Any:
    """PyTorch's type of a tensor of a model."""
    return getattr(torch, numpy_dtype(name).name)


def library_runs(torch: Any, kind: str, tensors: Sequence[Any]) -> dict[str, Run]:
    """Return PyTorch's own operator on these tensors, by library; none if there is none."""
    return _runs(torch, kind, tensors, lambda name, function: (name, function))


def copy_runs(torch: Any, moved: float) -> dict[str, Run]:
    """Return a copy that reads and writes `moved` bytes in all, as memory allows; none for 0."""
    if not moved:
        return {}
    source, target = (
        torch.ones(int(moved) // 2, dtype=torch.uint8, device="cuda") for _ in range(2)
    )
    return {COPY: lambda: target.copy_(source)}


def compiled_runs(torch: Any, kind: str, tensors: Sequence[Any]) -> dict[str, Run]:
    """Return the same by ``torch.compile``, which takes long to search kernels of Triton."""

    def compiled(_: str, function: Function) -> tuple[str, Function]:
        return COMPILED, torch.compile(function, mode="max-autotune-no-cudagraphs")

    return _runs(torch, kind, tensors, compiled)


def model_runs(torch: Any, case: Case) -> dict[str, Run]:
    """Return a model of `benchmarks.models` by ``torch.compile``; nothing for a model only in ONNX.

    Launches are CUDA graphs, as braid's are; attention is one kernel where there is one, and images
    are channels last.
    """
    if importlib.util.find_spec("transformers") is None:
        return {}
    models = importlib.import_module("benchmarks.models.torch_models").MODELS
    name = case.name.removesuffix(f" {case.element}")
    if name not in models:
        return {}
    make_module, make_inputs = models[name]
    dtype = getattr(torch, np.dtype(DTYPES[case.element]).name)
    with torch.no_grad():
        module = make_module().eval().to("cuda", dtype, memory_format=torch.channels_last)
        if getattr(getattr(module, "model", None), "_supports_sdpa", False):
            module.model.set_attn_implementation("sdpa")
        module = torch.compile(module, mode="reduce-overhead")
        inputs = [_on_gpu(torch, tensor, dtype) for tensor in make_inputs()]

    def run() -> Any:
        with torch.no_grad():
            return module(*inputs)

    return {COMPILED: run}


def _on_gpu(torch: Any, tensor: Any, dtype: Any) -> Any:
    tensor = tensor.cuda()
    if not tensor.is_floating_point():
        return tensor
    last = torch.channels_last if tensor.dim() == 4 else torch.contiguous_format
    return tensor.to(dtype, memory_format=last)


def function_of(torch: Any, kind: str) -> tuple[str, Function] | None:
    """Return the function that computes a kind of case, and whose kernels that takes."""
    functional = torch.nn.functional
    if kind.startswith(TOP):
        return "torch", lambda a: torch.topk(a, int(kind.removeprefix(TOP)), 1)[0]
    known: dict[str, tuple[str, Function]] = {
        "product": ("cuBLAS", lambda a, b: _product(torch, a, b)),
        "linear": ("cuBLAS", lambda a, b, c: torch.tanh(torch.addmm(c[0], a, b))),
        "conv": ("cuDNN", lambda a, b: _convolution(functional, a, b)),
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


def _convolution(functional: Any, a: Any, b: Any) -> Any:
    """Convolve channels-last tensors, which cuDNN prefers."""
    result = functional.conv2d(a.permute(0, 3, 1, 2), b.permute(0, 3, 1, 2))
    return result.permute(0, 2, 3, 1)


def _attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    """By cuDNN or FlashAttention; the keys come transposed."""
    own = (q.unsqueeze(0), k.transpose(1, 2).unsqueeze(0), v.unsqueeze(0))
    return torch.nn.functional.scaled_dot_product_attention(*own, scale=1.0)


def _runs(
    torch: Any,
    kind: str,
    tensors: Sequence[Any],
    change: Callable[[str, Function], tuple[str, Function]],
) -> dict[str, Run]:
    known = function_of(torch, kind)
    if known is None:
        return {}
    name, function = change(*known)
    tensors = _as_preferred(torch, kind, tensors)
    try:
        function(*tensors)
    except RuntimeError:  # it has no kernel for that
        return {}
    return {name: lambda: function(*tensors)}


def _as_preferred(torch: Any, kind: str, tensors: Sequence[Any]) -> list[Any]:
    """Return the same tensors in the layouts in which the libraries are fastest."""
    if kind == "depthwise":
        return [tensor.to(memory_format=torch.channels_last) for tensor in tensors]
    by_columns = kind == "attention" or (kind == "product" and tensors[0].dtype == torch.int8)
    return [
        one.mT.contiguous().mT if by_columns and number == 1 else one
        for number, one in enumerate(tensors)
    ]
