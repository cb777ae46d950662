"""A process that times kernels: `python -m braid.tuning.worker`.

Requests come on the standard input and answers go to the standard output, each pickled. A kernel
that is wrong ends only this process.
"""

import pickle
import sys
from typing import BinaryIO

from braid.tuning.timing import time_kernel


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more."""
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(time_kernel(request), answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
