"""`braid-lsp`: a language server for `.mlir` files, over standard input and output."""

import argparse
import sys
from collections.abc import Sequence

from braid import __version__
from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.tools.terminal.interrupts import INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """Run `braid-lsp` with `argv` (by default, the process's); returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="braid-lsp",
        description="A language server for .mlir files: an editor starts it and speaks with it "
        "over standard input and output.",
    )
    parser.add_argument("--version", action="version", version=f"braid-lsp {__version__}")
    parser.add_argument(
        "--stdio", action="store_true", help="the default, which editors may ask for"
    )
    parser.parse_args(argv)
    try:
        return _serve()
    except BraidError as error:
        print(f"braid-lsp: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _serve() -> int:
    try:
        from braid.tools.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise BraidError(
            f"braid-lsp needs pygls, which is not installed: {error}", hint=install_command("lsp")
        ) from error
    return serve()


if __name__ == "__main__":
    sys.exit(main())
