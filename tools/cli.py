"""`braid`: imports, compiles, runs, measures and verifies models."""

import sys
from collections.abc import Sequence

from braid.support.collector import end_without_search
from braid.tools.idle_threads import sleep_between_products
from braid.tools.terminal.interrupts import INTERRUPTED, ended_by_interrupts, keep_status


def main(argv: Sequence[str] | None = None) -> int:
    """Run `braid` with `argv` (by default, the process's); returns the exit status.

    A mistake of the user is one diagnostic on standard error and status 1.
    """
    try:
        if argv is None:
            sleep_between_products()
        with ended_by_interrupts(is_program=argv is None):
            from braid.tools.app import run_command
        if argv is None:
            end_without_search()
        if argv is not None:
            return run_command(argv)
        return keep_status(run_command(sys.argv[1:]))
    except KeyboardInterrupt:
        return INTERRUPTED if argv is not None else keep_status(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
