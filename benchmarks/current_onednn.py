"""Compare oneDNN of 2023, braid's baseline, with the current one inside of PyTorch.

``OMP_NUM_THREADS=1 python -m benchmarks.current_onednn [--json out.json]`` times the same
convolutions (channels last, weights packed beforehand; pointwise ones are products) in turns, on
one thread, and prints the least of all runs and how many times as fast the current one is.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks import onednn
from benchmarks.command import run_command

CONVOLUTIONS = (
    *((64, 64, 56, 3), (128, 128, 28, 3), (512, 512, 7, 3), (3, 64, 112, 7)),
    *((256, 64, 28, 1), (64, 256, 56, 1), (768, 768, 11, 1), (16, 96, 112, 1)),
)
"""Channels in and out, extent of the image, extent of the window."""
ROUNDS, LEAST_SECONDS = 15, 0.02

Run = Callable[[], Any]


def convolution(inputs: int, outputs: int, size: int, window: int) -> tuple[Run, Run]:
    """Return the two runs of one convolution of an image, padded by half of the window."""
    random = np.random.default_rng(0)
    pad = window // 2
    x = random.standard_normal((1, inputs, size, size)).astype(np.float32)
    w = random.standard_normal((outputs, inputs, window, window)).astype(np.float32)
    extent = size + 2 * pad - window + 1
    result = (1, outputs, extent, extent)
    old = onednn.convolution(x.shape, w.shape, result, 1, pad)
    source = torch.from_numpy(x).to(memory_format=torch.channels_last)
    weight = torch.from_numpy(w).to(memory_format=torch.channels_last)
    functions: Any = torch._C._nn
    shape = [1, inputs, size, size]
    packed = functions.mkldnn_reorder_conv2d_weight(
        weight.to_mkldnn(), [pad, pad], [1, 1], [1, 1], 1, shape
    )
    operators: Any = torch.ops.mkldnn

    def new() -> Any:
        return operators._convolution_pointwise(
            source, packed, None, [pad, pad], [1, 1], [1, 1], 1, "none", [], ""
        )

    expected = torch.nn.functional.conv2d(source, torch.from_numpy(w), padding=pad)
    assert torch.allclose(new(), expected, rtol=1e-3, atol=1e-3)
    return old, new


def least(runs: Sequence[Run]) -> list[float]:
    """Seconds of one run of each, the least of several rounds in turns."""
    counts = [1] * len(runs)
    best = [math.inf] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            begin = time.perf_counter()
            for _ in range(counts[index]):
                run()
            seconds = (time.perf_counter() - begin) / counts[index]
            best[index] = min(best[index], seconds)
            counts[index] = max(1, round(LEAST_SECONDS / max(best[index], 1e-9)))
    return best


def main() -> object:
    torch.set_num_threads(1)
    results: list[dict[str, Any]] = []
    cases = [(f"convolution {each}", convolution(*each)) for each in CONVOLUTIONS]
    for name, runs in cases:
        old, new = least(runs)
        results.append({"kernel": name, "2023": old, "current": new})
        print(f"{name:32} {old * 1e6:9.1f} µs, current {new * 1e6:9.1f} µs, {old / new:.2f}")
    mean = math.exp(sum(math.log(r["2023"] / r["current"]) for r in results) / len(results))
    print(f"the current one is {mean:.2f} times as fast, with PyTorch {torch.__version__}'s calls")
    return results


if __name__ == "__main__":
    run_command(main)
