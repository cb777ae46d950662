"""Flags of mlir-opt that `braid-opt` knows and refuses, each with the reason and the way out."""

_PLUGINS = "braid-opt runs passes and dialects in Python and cannot load libraries in C++; {}"
_ACTIONS = "passes in Python do not report MLIR's actions; {}"
_REMARKS = "braid's remarks have no kinds; {}"

REFUSED = {
    "elide-resource-data-from-bytecode": "bytecode is written with all of its resources; "
    "--mlir-elide-resource-strings-if-larger leaves them out of text",
    "emit-bytecode-producer": "MLIR's Python bindings, which write bytecode, name themselves as "
    "its producer",
    "load-dialect-plugin": _PLUGINS.format(
        "--irdl-file reads a dialect, and Python packages add some by the entry point "
        "'xdsl.universe'"
    ),
    "load-pass-plugin": _PLUGINS.format(
        "Python packages add passes by the entry point 'braid.passes'"
    ),
    "log-actions-to": _ACTIONS.format("--mlir-print-ir-after-change shows what each pass does"),
    "log-mlir-actions-filter": _ACTIONS.format(
        "--mlir-print-ir-after-change shows what each pass does"
    ),
    "mlir-debug-counter": _ACTIONS.format("'braid reduce' makes a failing input small"),
    "mlir-enable-debugger-hook": _ACTIONS.format("--debug shows where an error comes from"),
    "mlir-pretty-debuginfo": "locations are printed in the form that can be read again; "
    "--mlir-print-debuginfo prints them",
    "mlir-print-debug-counter": _ACTIONS.format("--mlir-pass-statistics counts ops"),
    "profile-actions-to": _ACTIONS.format("--mlir-timing has the time of each pass"),
    "remark-format": _REMARKS.format("--remarks prints them and --remarks-json writes JSON"),
    "remark-policy": _REMARKS.format("--remarks prints all"),
    "remarks-filter": _REMARKS.format("--remarks prints all, each with the name of its pass"),
    "remarks-filter-analyse": _REMARKS.format("--remarks prints all"),
    "remarks-filter-failed": _REMARKS.format("--remarks prints all"),
    "remarks-filter-missed": _REMARKS.format("--remarks prints all"),
    "remarks-filter-passed": _REMARKS.format("--remarks prints all"),
    "remarks-output-file": _REMARKS.format("--remarks-json=FILE writes them"),
}
"""The reasons why flags are refused, by name."""
