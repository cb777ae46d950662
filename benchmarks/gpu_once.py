"""Runs an artifact once on random inputs: ``python -m benchmarks.gpu_once model.braid``.

It is meant for checkers of a GPU's memory; it needs only ``braid-runtime``.
"""

import sys

import braid
from benchmarks.gpu_arrays import random_inputs
from benchmarks.gpu_case import Case


def main() -> int:
    """Run as a program."""
    model = braid.load(sys.argv[1])
    model.run(random_inputs(Case("any", "any"), model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
