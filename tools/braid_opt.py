"""`braid-opt`: the opt-style driver, for tests and for people who know mlir-opt."""

import sys
from collections.abc import Sequence

from braid.support.collector import end_without_search, rare_collections
from braid.tools.idle_threads import sleep_between_products
from braid.tools.terminal.interrupts import INTERRUPTED, ended_by_interrupts, keep_status


def main(argv: Sequence[str] | None = None) -> int:
    """Run `braid-opt` with `argv` (by default, the process's); returns the exit status."""
    try:
        if argv is None:
            sleep_between_products()
        with rare_collections():  # what is imported stays, too
            with ended_by_interrupts(is_program=argv is None):
                from braid.tools.opt.command import run_command
            if argv is None:
                end_without_search()
            if argv is not None:
                return run_command(argv)
            return keep_status(run_command(sys.argv[1:]))
    except KeyboardInterrupt:
        return INTERRUPTED if argv is not None else keep_status(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
