"""`braid-opt`: the opt-style driver, for tests and for people who know mlir-opt."""

import sys
import traceback
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `braid-opt` with `argv` (by default, the process's); returns the exit status."""
    from braid.support.collector import end_without_search, rare_collections

    if argv is None:
        end_without_search()
    with rare_collections():  # what is imported stays, too
        return _run(sys.argv[1:] if argv is None else argv)


def _run(arguments: Sequence[str]) -> int:
    from braid.support.errors import BraidError, was_interrupted
    from braid.tools.exhaustion import INTERRUPTED, exhausted
    from braid.tools.opt.arguments import parse_arguments
    from braid.tools.opt.driver import OptDriver
    from braid.tools.standard_output import checked_output

    try:
        with checked_output():
            return OptDriver(parse_arguments(arguments)).run()
    except BraidError as error:
        print(f"braid-opt: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        pass  # the reader has seen enough
    except Exception as error:
        if was_interrupted(error):
            return INTERRUPTED
        if "--debug" in arguments:
            traceback.print_exc()
        if (limit := exhausted(error)) is not None:
            print(f"braid-opt: {limit}", file=sys.stderr)
            return 1
        print(
            f"braid-opt: error: internal error: {type(error).__name__}: {error}\n"
            "hint: this is a bug of braid; --debug shows where",
            file=sys.stderr,
        )
    return 1


if __name__ == "__main__":
    sys.exit(main())
