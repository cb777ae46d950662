"""Cycles and DSPs of public HLS designs: braid's estimate and Vitis's against RTL simulation.

python -m benchmarks.fpga --data DIR/vitis [--fit] [--leave-one-out] [--json FILE]

DIR/vitis has `designs/NAME.cpp` and `designs.csv` (Stream-HLS, FPGA 2025). `--fit` finds operators'
latencies anew on each half, and reports each on the other (`benchmarks/results/fpga.json`).
`--leave-one-out` finds them on all families of kernels but one, and reports that one, for each:
eleven fits, each of a minute or two.
"""

import csv
from itertools import chain, combinations
from math import nan
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.command import run_command
from benchmarks.fpga.fit import Case, family, halves
from benchmarks.fpga.fit import fit as fit_operators
from benchmarks.fpga.reader import read_design
from braid.lowering.fpga.operators import vitis_operators
from braid.solvers.hls.estimate import estimate
from braid.solvers.hls.nests import Design
from braid.solvers.hls.schedule import Operators

Row = dict[str, Any]


def percentile(values: list[float], share: float) -> float:
    """Return the least value that this fraction does not exceed."""
    return sorted(values)[max(-(-int(len(values) * share * 1000) // 1000) - 1, 0)]


def measure(design: Design, known: dict[str, str], operators: Operators) -> Row:
    begin = perf_counter()
    found = estimate(design, operators)
    row: Row = {
        "design": design.name,
        "simulated": int(known["rtl_cycles"]),
        "cycles": found.cycles,
        "least": found.least,
        "stalls": found.cycles - found.least,
        "dsps": found.resources.dsps,
        "blocks": found.resources.blocks,
        "seconds": perf_counter() - begin,
    }
    row["error"] = row["cycles"] / row["simulated"] - 1
    if known["csynth_cycles"]:
        row["vitis"] = int(known["csynth_cycles"])
        row["vitis_error"] = row["vitis"] / row["simulated"] - 1
    if known["dsp"]:
        row["dsps_reported"] = int(known["dsp"])
        row["dsp_error"] = row["dsps"] / row["dsps_reported"] - 1
        # An UltraRAM has the numbers of eight blocks where they have 32 bits.
        row["blocks_reported"] = int(known["bram"]) + 8 * int(known["uram"])
    return row


def summary(rows: list[Row], name: str) -> Row:
    errors = [abs(row[name]) for row in rows if name in row]
    if not errors:
        return {"designs": 0}
    return {
        "designs": len(errors),
        "mean": mean(errors),
        "median": median(errors),
        "p90": percentile(errors, 0.9),
        "most": max(errors),
    }


def over_halves(rows: list[Row], name: str) -> Row:
    """Return the mean error on one half of the families, for all ways to halve them.

    Of latencies that are not fitted anew for each.
    """
    errors: dict[str, list[float]] = {}
    for row in rows:
        if name in row:
            errors.setdefault(family(row["design"]), []).append(abs(row[name]))
    many = len(errors)
    means = sorted(
        mean(chain.from_iterable(errors[one] for one in half))
        for size in sorted({many // 2, many - many // 2})
        for half in combinations(errors, size)
    )
    return {
        "halves": len(means),
        "median": median(means),
        "p90": percentile(means, 0.9),
        "most": means[-1],
    }


def table_of(groups: dict[str, list[Row]]) -> Table:
    table = Table("designs", "error of", "number", "mean", "median", "p90", "most")
    for name, rows in groups.items():
        for what in ("error", "vitis_error", "dsp_error"):
            one = summary(rows, what)
            cells = (f"{one.get(key, nan):.2%}" for key in ("mean", "median", "p90", "most"))
            table.add_row(name, what, str(one["designs"]), *cells)
    return table


def families_left_out(
    designs: dict[str, Design], known: dict[str, dict[str, str]], shipped: Operators
) -> dict[str, list[Row]]:
    """Designs of each family, with latencies that were fitted on all other families."""
    rows: dict[str, list[Row]] = {}
    for one in sorted({family(name) for name in designs}, key=str.casefold):
        cases: list[Case] = [
            (design, int(known[name]["rtl_cycles"]))
            for name, design in designs.items()
            if family(name) != one
        ]
        found = fit_operators(cases, shipped)
        rows[one] = [
            measure(design, known[name], found)
            for name, design in designs.items()
            if family(name) == one
        ]
    return rows


def main(*, data: Path, fit: bool = False, leave_one_out: bool = False) -> object:
    with (data / "designs.csv").open() as stream:
        known = {row["design"]: row for row in csv.DictReader(stream)}
    designs = {name: read_design(data / "designs" / f"{name}.cpp") for name in sorted(known)}
    first, second = halves(list(designs))
    result: Row = {}
    groups: dict[str, list[Row]] = {}
    shipped = vitis_operators()
    for label, names in (("fitted", first), ("reported", second)):
        groups[label] = [measure(designs[name], known[name], shipped) for name in names]
    if fit:
        for label, used, other in (("first", first, second), ("second", second, first)):
            cases = [(designs[name], int(known[name]["rtl_cycles"])) for name in used]
            found = fit_operators(cases, shipped)
            result[f"fitted on the {label} half"] = found
            groups[f"fitted on the {label} half, the other"] = [
                measure(designs[name], known[name], found) for name in other
            ]
            Console().print(found)
    if leave_one_out:
        alone = families_left_out(designs, known, shipped)
        groups |= {f"{one} left out": rows for one, rows in alone.items()}
        groups["each family left out"] = [row for rows in alone.values() for row in rows]
    for what in ("error", "dsp_error"):
        both = groups["fitted"] + groups["reported"]
        result[f"over all halves: {what}"] = over_halves(both, what)
        result[f"all: {what}"] = summary(both, what)
    for label, rows in groups.items():
        for what in ("error", "vitis_error", "dsp_error"):
            result[f"{label}: {what}"] = summary(rows, what)
        result[label] = rows
    Console().print(table_of(groups))
    return result


if __name__ == "__main__":
    run_command(main)
