"""The flags of `braid-opt` about reading, verification, and reactions to errors."""

import argparse
from pathlib import Path

from braid.tools.opt.files import SPLIT_MARKER
from braid.tools.opt.flag_types import flag_adder, settings


def add_flags_of_input(parser: argparse.ArgumentParser) -> None:
    """Add flags that say how the input is read."""
    group = parser.add_argument_group("reading")
    flag = flag_adder(group)
    group.add_argument(
        "--split-input-file",
        dest="split_marker",
        default="",
        metavar="MARKER",
        help=f"process the parts between lines of this marker, by default '{SPLIT_MARKER}', on "
        "their own",
    )
    group.add_argument(
        "--output-split-marker",
        default=SPLIT_MARKER,
        metavar="MARKER",
        help="separator between the results of such parts",
    )
    flag("--allow-unregistered-dialect", help="accept ops of unknown dialects")
    group.add_argument(
        "--irdl-file",
        type=Path,
        metavar="FILE",
        help="read dialects in IRDL from FILE first",
    )
    flag("--no-implicit-module", help="do not put a module around the ops of the input")
    group.add_argument(
        "--settings",
        type=settings,
        default={},
        metavar="SETTINGS",
        help="write these on the module (braid.settings), beside those that it says: "
        "'numerics=strict kernels=best'; a module that says none has those of BRAID_NUMERICS, "
        "BRAID_PRECISION and BRAID_EMULATE",
    )


def add_flags_of_checks(parser: argparse.ArgumentParser) -> None:
    """Add flags about verification."""
    group = parser.add_argument_group("checking")
    flag = flag_adder(group)
    flag("--verify-roundtrip", help="verify that the input is read back as it is printed")
    group.add_argument(
        "--verify-diagnostics",
        default="",
        choices=("all", "only-expected"),
        help="match diagnostics against 'expected-error' comments: all (default), or only those "
        "that are expected",
    )
    group.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the IR after every pass",
    )
    flag(
        "--verify-decisions",
        help="recompute the costs, bounds and peaks that passes claim, by separate code; a wrong "
        "claim is a crash of the pass",
    )
    group.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="never verify the IR, nor the input",
    )
    group.add_argument(
        "--mlir-very-unsafe-disable-verifier-on-parsing",
        dest="verify_input",
        action="store_false",
        help="do not verify the input, only the results of passes",
    )
    flag(
        "--mlir-disable-threading",
        help="accepted: passes run in sequence on the whole module in any case",
    )


def add_flags_of_errors(parser: argparse.ArgumentParser) -> None:
    """Add flags about reactions to errors, and their reproducers."""
    group = parser.add_argument_group("errors")
    flag = flag_adder(group)
    flag(
        "--mlir-print-op-on-diagnostic",
        dest="print_op",
        help="add the op that a diagnostic is about, as a note",
    )
    flag("--mlir-disable-diagnostic-notes", dest="no_notes", help="print no notes")
    group.add_argument(
        "--mlir-diagnostic-verbosity-level",
        dest="verbosity",
        choices=("errors", "warnings", "remarks"),
        default="remarks",
        help="print diagnostics up to these",
    )
    group.add_argument(
        "--crash-reproducer",
        "--mlir-pass-pipeline-crash-reproducer",
        type=Path,
        metavar="FILE",
        help="where to write the reproducer of a crash (default: a temporary file)",
    )
    group.add_argument(
        "--mlir-generate-reproducer",
        dest="reproducer",
        type=Path,
        metavar="FILE",
        help="write the input and the pipeline to FILE, also without a crash",
    )
    flag(
        "--mlir-pass-pipeline-local-reproducer",
        help="accepted: a reproducer has the pass that crashed alone in any case",
    )
    flag("--run-reproducer", help="run the pipeline that is stored in the input file")
    flag(
        "--debug",
        "--mlir-print-stacktrace-on-diagnostic",
        help="print the Python traceback of an error",
    )
