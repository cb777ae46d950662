"""What one core can do at most, to see a model's time in proportion."""

import time

import numpy as np


def peak_flops(size: int = 1024, repeats: int = 10) -> float:
    """Return FLOP/s of the fastest of some f32 matrix products by numpy's BLAS.

    Only a bound for one core where BLAS is held to one thread (OPENBLAS_NUM_THREADS=1).
    """
    a = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best
