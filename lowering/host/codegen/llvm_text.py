"""Translates LLVM IR text as MLIR's LLVM writes it to what llvmlite's LLVM reads.

The two differ in floating-point literals alone: the newer LLVM writes shortest decimals, `+inf`,
`+qnan` and the bits of the value's own type (`f0x3F800000`); the older one wants decimals to be
exact, and otherwise the bits of the value as a double (`0x3FF0000000000000`), except for half
(`0xH3C00`) and bfloat (`0xR3F80`).
"""

import re
import struct

_FORMATS = {"double": "d", "float": "f", "half": "e"}
"""These are codes of `struct`, which has none for bfloat."""
_LITERAL = re.compile(r"f0x|[0-9]\.|[-+](?:inf|s?q?nan)")
"""A pattern that every line with a literal matches, and few other lines."""
_TOKEN = re.compile(
    r"""(?P<string>"[^"]*")
    | (?<![\w.%@$-])(?P<type>double|float|half|bfloat)(?![\w.$-])
    | (?<![\w.%@$"])
      (?P<literal>f0x[0-9A-Fa-f]+ | [-+]?[0-9]+\.[0-9]*(?:e[-+]?[0-9]+)? | [-+](?:inf|s?q?nan))
      (?![\w.])
    """,
    re.VERBOSE,
)


def translate_literals(text: str) -> str:
    """Return `text` with every floating-point literal spelled as bits.

    A literal has the last type before it on its line, since an instruction gives the type of its
    second operand only with the first.
    """
    return "\n".join(_translate_line(line) for line in text.splitlines())


def _translate_line(line: str) -> str:
    if _LITERAL.search(line) is None:
        return line
    current: str | None = None

    def replace(match: re.Match[str]) -> str:
        nonlocal current
        if match["type"] is not None:
            current = match["type"]
        elif match["literal"] is not None and current is not None:
            return _spell(match["literal"], current)
        return match[0]

    return _TOKEN.sub(replace, line)


def _spell(literal: str, type_name: str) -> str:
    """Return the value in the older spelling."""
    if literal.startswith("f0x"):
        bits = int(literal[3:], 16)
    else:
        bits = _bits(float(literal.replace("qnan", "nan")), type_name)
    match type_name:
        case "half":
            return f"0xH{bits:04X}"
        case "bfloat":
            return f"0xR{bits:04X}"
        case "float":
            (value,) = struct.unpack("<f", bits.to_bytes(4, "little"))
            return f"0x{_bits(value, 'double'):016X}"
        case _:
            return f"0x{bits:016X}"


def _bits(value: float, type_name: str) -> int:
    """Return the bits of the nearest value of the type."""
    if type_name == "bfloat":
        bits = _bits(value, "float")
        if value != value:
            return bits >> 16
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # halves to even
    return int.from_bytes(struct.pack(f"<{_FORMATS[type_name]}", value), "little")


_MOVING = {
    *("alloca", "bitcast", "declare", "define", "extractelement", "extractvalue", "getelementptr"),
    *("insertelement", "insertvalue", "load", "phi", "ret", "select", "shufflevector", "store"),
}
_OPCODE = re.compile(r"^\s*(?:%[\w.$\"-]+\s*=\s*)?(?:tail )?(\w+|@)(?: (\w+))?")
_FLAGS = {"afn", "arcp", "contract", "fast", "ninf", "nnan", "nsz", "reassoc"}
_MOVING_CALL = re.compile(r"@llvm\.(?:masked|vector)\.")
_BFLOAT = re.compile(r"(?<![\w.%@$\"-])bfloat(?![\w.$-])")
_BFLOAT_LITERAL = re.compile(r"(?<![\w.%@$\"-])0xR([0-9A-F]{4})(?!\w)")
_DECLARED = re.compile(r"declare .*?(@llvm\.[\w.]+)\(")
_INTRINSIC = re.compile(r"@llvm\.[\w.]*bf16[\w.]*")
_TYPE_OF_NAME = re.compile(r"(?<=\.)(v\d+)?bf16(?=\.|$)")


def bfloat_as_integers(text: str) -> str:
    """Return `text` with i16 for bfloat where that is only moved: LLVM fails on some vectors of it.

    Conversions are integer operations already (`arith-expand`). Text that computes with bfloat does
    not change.
    """
    if "bfloat" not in text:
        return text
    lines = [line for line in text.splitlines() if _BFLOAT.search(line)]
    if not all(map(_only_moves, lines)):
        return text
    text = _BFLOAT.sub("i16", text)
    text = _INTRINSIC.sub(lambda name: _TYPE_OF_NAME.sub(r"\g<1>i16", name[0]), text)
    text = _BFLOAT_LITERAL.sub(lambda literal: str(int(literal[1], 16)), text)
    return _declared_once(text)


def _declared_once(text: str) -> str:
    """Return `text` without repeated declarations of an intrinsic, such as for i16 and bfloat."""
    declared: set[str] = set()
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        found = _DECLARED.match(line)
        if found is None or found[1] not in declared:
            lines.append(line)
        if found is not None:
            declared.add(found[1])
    return "".join(lines)


_VECTOR = re.compile(r"<\d+ x ")
_FLOAT_ARITHMETIC = re.compile(r"= f(?:add|sub|mul|div|rem|neg|cmp)\b")


def only_moves_vectors(text: str) -> bool:
    """Return whether a module only loads, rearranges and stores vectors, at computed addresses."""
    lines = text.splitlines()
    vectors = [line for line in lines if _VECTOR.search(line)]
    if not vectors or _FLOAT_ARITHMETIC.search(text):
        return False
    calls = (line for line in lines if "call " in line)
    return all(map(_only_moves, vectors)) and all(map(_only_moves, calls))


def _only_moves(line: str) -> bool:
    """Return whether an instruction, a function or a global is as valid with integers."""
    found = _OPCODE.match(line)
    if found is None or found[2] in _FLAGS:
        return False
    if found[1] == "call":
        return _MOVING_CALL.search(line) is not None
    return found[1] == "@" or found[1] in _MOVING
