"""From a file to the text in it, whose brackets are not nested too deep.

xDSL's parser and upstream's both recurse into brackets; upstream's ends the process if its stack
overflows. Braces of regions count as all others do.
"""

import re
from pathlib import Path

import numpy as np

from braid.frontends.mlir.aliases import expansions
from braid.support.errors import BraidError, SourceLocation, missing_file_hint
from braid.support.input_files import read_regular
from braid.support.model_bytes import BYTECODE_MAGIC


class MLIRSyntaxError(BraidError):
    """The text is not MLIR, or uses an op, attribute or type that no loaded dialect has."""

    op = ""
    """The name of an op that no loaded dialect has, where the error is about one."""


DEPTH = 120
"""Brackets within each other; models have some 30 at most."""
LOCATIONS = 10
"""The factor by which locations may be nested deeper: there is one around each caller."""
EXPANDED = 1 << 24
EXPANDED_OF_A_CHARACTER = 32
"""Characters with aliases written out, and for each that is written: locations have some 20."""
CHAIN = 1000
"""The most operators or arrows in sequence; a parser may recurse for each of them."""

_IS_LOCATION = re.compile(r"#[\w$.-]+[ \t\n]*=[ \t\n]*loc\b", re.ASCII)
_SKIPPED = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|>=|<=')
_CHAIN = re.compile(rb"(?:(?:[-+*]|\(\s*\)\s*->)[\s\w]*){%d}" % CHAIN)
_STEP = np.zeros(256, np.int32)
_STEP[list(b"([{<")] = 1
_STEP[list(b")]}>")] = -1


def check_nesting(text: str, file: str) -> None:
    """Raise MLIRSyntaxError where `text` is nested so deep that reading may exhaust a stack."""
    data = text.encode(errors="replace")
    if sum(map(data.count, b"([{<")) <= DEPTH and sum(map(data.count, b"-+*")) < CHAIN:
        return
    plain = _SKIPPED.sub(b"", data)
    level = np.cumsum(_STEP[np.frombuffer(plain, np.uint8)], dtype=np.int32)
    if not len(level):
        return
    # A bracket that closes nothing does not make room for others.
    depth = level - np.minimum(np.minimum.accumulate(level), 0)
    deepest = int(np.argmax(depth > DEPTH))
    if depth[deepest] > DEPTH:
        _refuse(plain, deepest, f"brackets are nested more than {DEPTH} deep", file)
    if (chain := _CHAIN.search(plain)) is not None:
        _refuse(plain, chain.start(), f"{CHAIN} operators stand one behind the other", file)


def check_aliases(text: str, file: str) -> None:
    """Raise MLIRSyntaxError where `text` with its aliases written out is too large or deep."""
    places, known, total = expansions(text)
    most = EXPANDED + EXPANDED_OF_A_CHARACTER * len(text)
    for name, place in places.items():
        is_location = _IS_LOCATION.match(text, place) is not None
        message = None
        if known[name].characters > most:
            message = f"alias '{name}' stands for more than {most} characters"
        elif known[name].depth > DEPTH * (LOCATIONS if is_location else 1):
            message = f"alias '{name}' stands for brackets nested {known[name].depth} deep"
        if message is not None:
            _refuse_alias(text, place, message, file)
    if total > most:
        largest = max(known, key=lambda name: known[name].characters)
        message = f"the module has more than {most} characters with its aliases written out"
        _refuse_alias(text, places[largest], f"{message}; '{largest}' is the longest", file)


def _refuse_alias(text: str, place: int, message: str, file: str) -> None:
    line = text.count("\n", 0, place) + 1
    raise MLIRSyntaxError(
        message,
        location=SourceLocation(file, line, place - text.rfind("\n", 0, place)),
        hint="let aliases name fewer others",
    )


def _refuse(data: bytes, place: int, message: str, file: str) -> None:
    line = data.count(b"\n", 0, place) + 1
    column = place - data.rfind(b"\n", 0, place)
    raise MLIRSyntaxError(
        f"{message}, which may be too deep to read",
        location=SourceLocation(file, line, column),
        hint="write inner regions as functions, and long expressions in parts",
    )


def read_mlir_text(path: Path) -> str:
    """Return the text of the MLIR file at `path`. Raises `BraidError` where it cannot be read."""
    try:
        return decode_mlir(read_regular(path), str(path))
    except OSError as error:
        raise BraidError(
            f"cannot read '{path}': {error.strerror}", hint=missing_file_hint(path)
        ) from error


def decode_mlir(data: bytes, file: str) -> str:
    """Return `data` as MLIR text. Raises `MLIRSyntaxError` for bytecode and for text that is not
    UTF-8."""
    location = SourceLocation(file)
    if data.startswith(BYTECODE_MAGIC):
        raise MLIRSyntaxError(
            "expected MLIR text, but this is MLIR bytecode",
            location=location,
            hint="convert it with 'mlir-opt FILE -o FILE.mlir'",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MLIRSyntaxError(
            f"expected MLIR text, but byte {error.start} is not UTF-8", location=location
        ) from error
    text = text.replace("\r\n", "\n")
    check_nesting(text, file)
    check_aliases(text, file)
    return text
