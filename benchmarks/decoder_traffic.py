"""Bytes that a step of a decoder moves, counted by a simulated cache, beside those it has to read.

``python -m benchmarks.decoder_traffic [--model t5] --json FILE`` compiles a decoder for AVX2, which
valgrind knows, and runs it twice by ``valgrind --tool=cachegrind``: once with a few steps, once
with more. Every load and store of the process passes through a simulated cache of 1 MiB, smaller
than any decoder's weights. One run has more steps than the other: its additional cache misses are
the traffic of these steps, independent of braid's own account: weights, caches, copies and Python.
Steps are timed by nothing, so a busy machine counts the same. The exit status is 1 where a step
moves more than 1.1 times the bytes of the weights and caches that it has to read.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import braid
from benchmarks.arguments import count, output_file
from benchmarks.decoder_steps import LENGTHS
from benchmarks.decoders import KINDS, Decoder, decoder_of, first_input, read_bytes
from benchmarks.models.plain_decoder import WEIGHTS
from benchmarks.provenance import provenance

LINE = 64
CACHE = 1 << 20
_WAYS = 16
_CPU = "haswell"
_FEW, _MANY = 2, 42
"""Steps of the two runs: the first ones make plans and touch new pages. Python's start differs by
up to 20 MB between runs, which is half a megabyte for each of these steps."""
_MOST = 1.1


@dataclass(frozen=True)
class Row:
    """The bytes of a step after `past` tokens: those that it moves, and those that it must read."""

    past: int
    moved: int
    needed: int

    @property
    def ratio(self) -> float:
        """Return the bytes that are moved over those that have to be read."""
        return self.moved / self.needed


def run_steps(artifact: str, arrays: str, steps: int) -> None:
    """Run steps of a saved model from saved arrays, in a process that is counted."""
    model = braid.load(artifact)
    given = dict(np.load(arrays))
    state = {name: given.pop(name) for name in model.appended_state}
    capacity = steps + max(max(array.shape) for array in state.values())
    session = model.session(capacity=capacity)
    session.reset(state)
    for _ in range(steps):
        session(given)


def missed_lines(artifact: Path, arrays: Path, steps: int) -> int:
    """Return the lines that miss the simulated cache in a process that runs these steps."""
    counted = arrays.with_suffix(f".{steps}.counts")
    call = f"run_steps({str(artifact)!r}, {str(arrays)!r}, {steps})"
    cache = f"--LL={CACHE},{_WAYS},{LINE}"
    command = ["valgrind", "--tool=cachegrind", cache, f"--cachegrind-out-file={counted}"]
    script = f"from benchmarks.decoder_traffic import run_steps; {call}"
    subprocess.run(
        [*command, sys.executable, "-c", script],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
    )
    # The file names what it counts in a line, and has the sums over all of the process in another.
    parts = (line.partition(": ") for line in counted.read_text().splitlines())
    lines = {name: rest.split() for name, _, rest in parts}
    found = dict(zip(lines["events"], map(int, lines["summary"]), strict=True))
    return found["DLmr"] + found["DLmw"]


def measure(decoder: Decoder, folder: Path) -> Iterator[Row]:
    """Yield the bytes of a step after each length."""
    artifact, arrays = folder / "model.braid", folder / "arrays.npz"
    braid.compile(decoder.step, state=decoder.state, cpu=_CPU).save(artifact)
    for past in LENGTHS:
        given: Any = {first_input(decoder.step): np.array([[7]])}
        np.savez(arrays, **given | decoder.fixed() | decoder.cache(past))
        few, many = (missed_lines(artifact, arrays, steps) for steps in (_FEW, _MANY))
        moved = (many - few) * LINE // (_MANY - _FEW)
        yield Row(past, moved, read_bytes(decoder, past))


def main() -> int:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", choices=KINDS, default=KINDS[0])
    parser.add_argument("--layers", type=count, default=2)
    parser.add_argument("--width", type=count, default=512, help="a multiple of 64")
    parser.add_argument("--weights", choices=WEIGHTS, default=WEIGHTS[0], help="of a plain decoder")
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args()
    decoder = decoder_of(options.model, options.layers, options.width, options.weights)
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(decoder, Path(folder)):
            rows.append(row)
            print(
                f"after {row.past}: {row.moved / 1e6:.1f} MB moved, {row.needed / 1e6:.1f} MB of "
                f"weights and caches, ratio {row.ratio:.3f}",
                flush=True,
            )
    if options.json is not None:
        found = {
            **provenance(),
            "model": options.model,
            "layers": options.layers,
            "width": options.width,
            "weights": options.weights,
            "cache_bytes": CACHE,
            "steps": [_FEW, _MANY],
            "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row.ratio <= _MOST for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
