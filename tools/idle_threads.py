"""Keep threads of numpy's library from waiting in a loop between two products."""

import os


def sleep_between_products() -> None:
    """Let them sleep, for which numpy must not have been imported yet.

    They wait for the next one in a loop for up to 0.1 s, each on a core, and when they start: a
    third of the CPU seconds of importing numpy on two cores. This is only for braid's own programs,
    which seldom multiply by numpy; the user's setting is kept.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2⁴ cycles, the least
