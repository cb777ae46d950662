"""Loads damaged artifacts, one after the other, in a process that may die of it.

`python artifact_damage.py KIND ARTIFACT EXPECTED FIRST END` makes the damage of
each seed from FIRST to END - 1 and prints a line for it: `refused` with the message, `right` where
the outputs are those in EXPECTED, or what went wrong. KIND is `bytes`, or `manifest` for edits of
the manifest with digests that are right.
"""

import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import braid
from braid.runtime.artifact import digest
from braid.support.errors import BraidError

HEADER, ENTRY = 16, 32


def sections(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of each."""
    (count,) = struct.unpack_from("<I", data, 12)
    entries = struct.iter_unpack("<IIQQQ", data[HEADER : HEADER + count * ENTRY])
    return [(kind, data[offset : offset + size]) for kind, _, offset, size, _ in entries]


def joined(parts: list[tuple[int, bytes]]) -> bytes:
    """Return an artifact of these sections, each on its own page, written without braid's
    writer."""
    table, body = b"", b""
    start = -(-(HEADER + len(parts) * ENTRY + 8) // 4096) * 4096
    for kind, content in parts:
        table += struct.pack("<IIQQQ", kind, 0, start + len(body), len(content), digest(content))
        body += content + bytes(-len(content) % 4096)
    head = struct.pack("<8sII", b"BRAIDART", 2, len(parts)) + table
    return (head + struct.pack("<Q", digest(head))).ljust(start, b"\0") + body


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to a few bytes flipped, the end cut off, a range of zeros, or two ranges swapped."""
    result = bytearray(data)
    # Half of the damage is where most matters: the header, the manifest and the code's start.
    most = len(data) if rng.random() < 0.5 else min(len(data), 12_000)
    at, length = rng.randrange(most), rng.choice((1, 8, 64, 4096))
    match rng.randrange(4):
        case 0:
            for _ in range(rng.randint(1, 5)):
                result[rng.randrange(most)] ^= 1 << rng.randrange(8)
        case 1:
            del result[at:]
        case 2:
            result[at : at + length] = bytes(len(result[at : at + length]))
        case _:
            other = rng.randrange(most)
            size = min(length, len(data) - max(at, other))
            result[at : at + size] = data[other : other + size]
            result[other : other + size] = data[at : at + size]
    return bytes(result)


def edited_manifest(data: bytes, rng: random.Random) -> bytes:
    """One to three values of the manifest replaced, left out, doubled or exchanged."""
    parts = dict(sections(data))
    tree = json.loads(parts[1])
    for _ in range(rng.randint(1, 3)):
        holders = list(_holders(tree))
        holder, key = rng.choice(holders)
        other, other_key = rng.choice(holders)
        match rng.randrange(5):
            case 0:
                holder[key] = rng.choice((0, -1, 1, 7, 2**62, 2**64, 1.5, True, None, "", [], {}))
            case 1:
                del holder[key]
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case 3 if isinstance(holder[key], int):
                holder[key] += rng.choice((-64, -1, 1, 64))
            case _:
                holder[key], other[other_key] = other[other_key], holder[key]
    parts[1] = json.dumps(tree, check_circular=False).encode()
    return joined(list(parts.items()))


def _holders(tree: Any) -> Any:
    """Every place in lists and objects."""
    keys = range(len(tree)) if isinstance(tree, list) else tree if isinstance(tree, dict) else ()
    for key in keys:
        yield tree, key
        yield from _holders(tree[key])


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bytes": damaged_bytes,
    "manifest": edited_manifest,
}


def outcome(path: Path, expected: np.ndarray) -> str:
    """Return the result of loading, running and saving it again."""
    copy = path.with_suffix(".copy")
    model, result, said = None, None, ""
    try:
        model = braid.load(path)
        (result,) = model.run([np.ones(model.inputs[0].bound, np.float32)])
    except BraidError as error:
        said = error.message
    try:
        if model is not None:
            model.save(copy)
            if result is None:
                return f"WRONG: saved again though {said}"
            if copy.read_bytes() != path.read_bytes():
                return "WRONG: saved as something else"
    except BraidError as error:
        if result is not None:
            return f"WRONG: ran, but cannot be saved: {error.message}"
    if result is None:
        return f"refused: {said}" if str(path) in said else f"WRONG: no file in '{said}'"
    return "right" if np.array_equal(result, expected) else "WRONG: another result"


def main() -> None:
    kind, artifact, expected, first, end = sys.argv[1:]
    data, numbers = Path(artifact).read_bytes(), np.load(expected)
    for seed in range(int(first), int(end)):
        path = Path(artifact).with_name("damaged.braid")
        try:
            path.write_bytes(DAMAGE[kind](data, random.Random(seed)))
        except RecursionError:  # an object that was put into itself
            print(seed, "refused: no JSON", flush=True)
            continue
        print(seed, outcome(path, numbers), flush=True)


if __name__ == "__main__":
    main()
