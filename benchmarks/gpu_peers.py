"""What PyTorch takes on a GPU for the cases of ``benchmarks.gpu``: cuBLAS, cuDNN, Triton.

PyTorch need not be installed, and without a GPU nothing is measured.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def available() -> bool:
    """Whether PyTorch and a GPU are there."""
    if importlib.util.find_spec("torch") is None:
        return False
    torch: Any = importlib.import_module("torch")
    return bool(torch.cuda.is_available())


def seconds(kind: str, inputs: Sequence[Array], runs: int) -> dict[str, float]:
    """The least time of each peer, by the device's events."""
    torch: Any = importlib.import_module("torch")
    functions = _functions(torch, kind)
    tensors = [_tensor(torch, array) for array in inputs]
    if kind == "conv":
        tensors = [tensor.to(memory_format=torch.channels_last) for tensor in tensors]
    found: dict[str, float] = {}
    for name, function in functions.items():
        try:
            found[name] = _least(torch, lambda own=function: own(*tensors), runs)
        except RuntimeError:  # it has no kernel for that
            continue
    return found


def _functions(torch: Any, kind: str) -> dict[str, Callable[..., Any]]:
    own: dict[str, tuple[str, Callable[..., Any]]] = {
        "product": ("cuBLAS", lambda a, b: _product(torch, a, b)),
        "conv": ("cuDNN", torch.nn.functional.conv2d),
        "attention": ("torch", lambda q, k, v: _attention(torch, q, k, v)),
        "softmax": ("torch", lambda a: torch.softmax(a, 1)),
        "tanh": ("torch", torch.tanh),
        "layer_norm": (
            "torch",
            lambda a, b, c: torch.nn.functional.layer_norm(a, a.shape[1:], b[0], c[0]),
        ),
    }
    if kind not in own:
        return {}
    name, function = own[kind]
    return {
        name: function,
        "torch.compile": torch.compile(function, mode="max-autotune-no-cudagraphs"),
    }


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
