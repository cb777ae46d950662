"""Keep threads of numpy's library from waiting in a loop between two products."""

import os


def sleep_between_products() -> None:
    """Let them sleep, for which numpy must not have been imported yet.

    They wait for the next one in a loop for up to 0.1 s, each on a core, and when they start: a
    third of the CPU seconds of importing numpy on two cores. Only for programs of braid's own,
    which seldom multiply by numpy; what a user has set stays.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2⁴ cycles, the least
