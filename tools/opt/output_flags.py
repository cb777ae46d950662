"""The flags of `braid-opt` about what is printed, and how."""

import argparse
from pathlib import Path

from braid.tools.opt.flag_types import flag_adder, limit, names


def add_flags_of_result(parser: argparse.ArgumentParser) -> None:
    """Add flags that say in which form the result is written."""
    group = parser.add_argument_group("result")
    group.add_argument(
        "--emit",
        choices=("mlir", "upstream", "irdl"),
        default="mlir",
        help="mlir (default): the result; upstream: the result as mlir-opt reads it with braid's "
        "IRDL; irdl: that IRDL, for mlir-opt's --irdl-file, without any input",
    )
    flag = flag_adder(group)
    flag("--emit-bytecode", help="write the result as MLIR bytecode, which upstream tools read")
    group.add_argument(
        "--emit-bytecode-version",
        dest="bytecode_version",
        type=limit,
        metavar="N",
        help="of this version, by default the newest",
    )


def add_flags_of_printing(parser: argparse.ArgumentParser) -> None:
    """Add flags that say how IR is printed, the result and that around passes."""
    group = parser.add_argument_group("printing")
    flag = flag_adder(group)
    flag("--print-op-generic", dest="print_generic", help="print ops in their generic form")
    flag("--print-debuginfo", help="print the locations of ops")
    flag(
        "--mlir-print-local-scope",
        help="accepted: types, attributes and locations are printed without aliases in any case",
    )
    flag(
        "--mlir-print-assume-verified",
        help="accepted: ops are printed in their custom form without being verified in any case",
    )
    flag("--mlir-print-skip-regions", dest="skip_regions", help="print regions as {...}")
    flag(
        "--mlir-print-unique-ssa-ids",
        dest="unique_ids",
        help="give no two values one name, also in different functions",
    )
    flag(
        "--mlir-use-nameloc-as-prefix",
        dest="location_names",
        help='name values by the loc("name") of their definition',
    )
    flag(
        "--mlir-print-value-users",
        dest="value_users",
        help="print the users of each value as a comment",
    )
    _add_limits(group)


def _add_limits(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--mlir-elide-elementsattrs-if-larger",
        dest="most_elements",
        type=limit,
        metavar="N",
        help="print no elements of dense attributes that have more than N",
    )
    group.add_argument(
        "--mlir-print-elementsattrs-with-hex-if-larger",
        dest="most_plain_elements",
        type=limit,
        metavar="N",
        help="print dense attributes of more than N elements as bytes; -1 prints none so",
    )
    group.add_argument(
        "--mlir-elide-resource-strings-if-larger",
        dest="most_characters",
        type=limit,
        metavar="N",
        help="leave out resources that take more than N characters",
    )


def add_flags_of_dumps(parser: argparse.ArgumentParser) -> None:
    """Add flags that print the IR around passes."""
    group = parser.add_argument_group("IR around passes", "It goes to standard error.")
    flag = flag_adder(group)
    flag("--print-ir-before-all", dest="print_before_all", help="print the IR before every pass")
    flag("--print-ir-after-all", dest="print_after_all", help="print the IR after every pass")
    flag(
        "--print-ir-after-change",
        dest="print_after_change",
        help="print the IR after every pass that changed it",
    )
    flag(
        "--print-ir-after-failure",
        dest="print_after_failure",
        help="print the IR after a pass that failed",
    )
    for when in ("before", "after"):
        group.add_argument(
            f"--print-ir-{when}",
            f"--mlir-print-ir-{when}",
            dest=f"print_{when}",
            type=names,
            action="extend",
            default=[],
            metavar="PASSES",
            help=f"print the IR {when} these passes, separated by commas",
        )
    flag(
        "--print-ir-module-scope",
        help="accepted: the whole module is printed around passes in any case",
    )
    group.add_argument(
        "--print-ir-tree-dir",
        "--mlir-print-ir-tree-dir",
        dest="print_tree_dir",
        type=Path,
        metavar="DIR",
        help="print the IR to files under DIR instead, after all passes unless others are chosen",
    )


def add_flags_of_reports(parser: argparse.ArgumentParser) -> None:
    """Add flags that report on passes."""
    group = parser.add_argument_group("reports")
    flag = flag_adder(group)
    flag("--timing", help="print the time of every pass to standard error")
    group.add_argument(
        "--mlir-timing-display",
        dest="timing_display",
        choices=("tree", "list"),
        default="tree",
        help="in the order of the passes (tree, default), or the longest first (list)",
    )
    group.add_argument(
        "--mlir-output-format",
        dest="timing_format",
        choices=("text", "json"),
        default="text",
        help="the format of times",
    )
    flag(
        "--mlir-pass-statistics",
        dest="statistics",
        help="print to standard error how many ops each pass found, made and removed",
    )
    group.add_argument(
        "--mlir-pass-statistics-display",
        dest="statistics_display",
        choices=("pipeline", "list"),
        default="pipeline",
        help="for each run of a pass (pipeline, default), or for all of one name (list)",
    )
    flag("--dump-pass-pipeline", help="print the passes that will run to standard error")
    flag("--remarks", help="print what passes decided to standard error")
    group.add_argument(
        "--debug-only",
        type=names,
        action="extend",
        default=[],
        metavar="PASSES",
        help="print what these passes decided, separated by commas, as --remarks does for all; "
        "other debug types of LLVM print nothing, since passes are in Python",
    )
    group.add_argument(
        "--remarks-json",
        type=Path,
        metavar="FILE",
        help="write what passes decided to FILE, as JSON",
    )
