"""Measure the peak throughput of one core, to see a model's time in proportion."""

import os
import subprocess
import sys
import time

import numpy as np


def peak_flops() -> float:
    """Return FLOP/s of `fastest_product` in a separate process, whose BLAS has one thread."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.models.peak"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(output.stdout)


def fastest_product(size: int = 1024, repeats: int = 10) -> float:
    """Return FLOP/s of the fastest of some f32 matrix products by numpy's BLAS."""
    a = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best


if __name__ == "__main__":
    print(fastest_product())
