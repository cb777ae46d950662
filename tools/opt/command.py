"""The command `braid-opt`, and its messages when it fails."""

import sys
import traceback
from collections.abc import Sequence

from braid.support.errors import BraidError, was_interrupted
from braid.support.option_names import naming_commands
from braid.tools.opt.arguments import parse_arguments
from braid.tools.opt.driver import OptDriver
from braid.tools.terminal.exhaustion import exhausted
from braid.tools.terminal.interrupts import INTERRUPTED
from braid.tools.terminal.standard_output import checked_output


def run_command(arguments: Sequence[str]) -> int:
    """Run `braid-opt` with these; returns the exit status, after a diagnostic where that is 1."""
    try:
        with checked_output(), naming_commands():
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
