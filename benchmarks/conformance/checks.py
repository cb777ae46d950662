"""Test functions of MLIR suites as models: `@main` returns what is checked and expected.

Suites of StableHLO and IREE hold functions without arguments that compute and then check, by ops of
a dialect `check` of their own. Text is rewritten, since no parser here has that dialect.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_FUNCTION = re.compile(r"func\.func (?:public |private )?@([\w$.]+)")
_VISIBILITY = re.compile(r"func\.func (?:public |private )?@")
_CHECK = re.compile(r"^\s*(?:stablehlo\.custom_call @)?check\.(?:expect_)?(\w+)", re.MULTILINE)
_CONSTANT = re.compile(r"\butil\.unfoldable_constant\b(?=([^\n]*complex<)?)")
_BARRIER = re.compile(
    r"(%\w+) = (?:util\.optimization_barrier|flow\.tensor\.tie_shape) (%\w+) : [^\n]+"
)
"""Ops of IREE that return their operand."""
_CONSTANT_OF_ANY_SIZE = re.compile(
    r"(%\w+) = flow\.tensor\.dynamic_constant (dense<[^>]*>) : (tensor<[^>]*>) -> (tensor<[^>]*>)"
)
"""An op of IREE that hides the sizes of a constant."""
_TOLERANCE = re.compile(r"\btolerance = ([0-9.e+-]+)")
_FIELDS = re.compile(r"\s*\{tolerance = [^}]*\}$")
_DRAWN = re.compile(r"\bstablehlo\.rng\b(?!_)")
_ALIAS = re.compile(r"^[#!]\w+ = .*$", re.MULTILINE)
_VALUE = re.compile(r"%[\w$.]+(?:#\d+)?")
_OPENING, _CLOSING = "([{<", ")]}>"
_RETURN = re.compile(r"\b(?:func\.)?return\b[^\n]*")

_CONSTANT_OP = "check.constant"
"""A constant of the test's own dialect."""

EXACT = ("eq", "eq_const")
"""Checks of equality; the others allow for rounding."""
_OF_PAIRS = ("eq", "almost_eq", "close")


class UnknownCheckError(Exception):
    """Raised for a test that is not one function with checks of known kinds."""


@dataclass(frozen=True)
class Check:
    """A check of two results of `@main`; those of complex numbers are two pairs."""

    is_exact: bool
    is_complex: bool
    tolerance: float | None = None
    """The tolerance that the test itself says."""

    @property
    def results(self) -> int:
        """Return the number of results: each value, then each one expected."""
        return 4 if self.is_complex else 2


@dataclass(frozen=True)
class Program:
    """A test as the text of a module, and its method of comparison."""

    name: str
    text: str
    checks: tuple[Check, ...]


def programs_in(name: str, text: str) -> Iterator[Program | tuple[str, str]]:
    """Yield each test function of a file; its name and the reason where it is no model."""
    for number, part in enumerate(_SPLIT.split(text)):
        part = _COMMENT.sub("", part)
        functions = dict(_functions(part))
        functions = {each: _of_no_vendor(own) for each, own in functions.items()}
        for function, own in functions.items():
            if _CHECK.search(own) is None:
                continue
            called = _called(function, functions)
            label = f"{name}:{number}:{function}"
            try:
                main, checks = _as_main(function, own)
            except UnknownCheckError as error:
                yield label, str(error)
                continue
            others = [_VISIBILITY.sub("func.func private @", functions[each]) for each in called]
            yield Program(label, "\n".join([*_ALIAS.findall(part), main, *others]), checks)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each function."""
    for match in _FUNCTION.finditer(text):
        end = _after_braces(text, match.start())
        yield match[1], text[match.start() : end]


def _after_braces(text: str, start: int) -> int:
    """Return the place after the body of a function: the last braces of its outermost level."""
    place, depth, was_result = start, 0, False
    while place < len(text):
        letter = text[place]
        if letter == '"':
            place = text.index('"', place + 1)
        elif letter in "({[":
            if letter == "{" and depth == 0 and not was_result:
                return _closing(text, place) + 1
            depth += 1
        elif letter in ")}]":
            depth -= 1
            was_result = False
        elif text.startswith("attributes", place) and depth == 0:
            place = _closing(text, text.index("{", place))
        place += 1
    return len(text)


def _closing(text: str, start: int) -> int:
    """Return the place of the brace that closes the one at `start`."""
    depth, place = 0, start
    while place < len(text):
        letter = text[place]
        if letter == '"':
            place = text.index('"', place + 1)
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return place
        place += 1
    return len(text) - 1


def _called(function: str, functions: dict[str, str]) -> list[str]:
    """Return the functions that one calls, and their callees."""
    found: list[str] = []
    pending = [function]
    while pending:
        text = functions[pending.pop()]
        for name in re.findall(r"@([\w$.]+)", text):
            if name in functions and name != function and name not in found:
                found.append(name)
                pending.append(name)
    return found


def _as_main(name: str, text: str) -> tuple[str, tuple[Check, ...]]:
    """Return the function as `@main` that returns both sides of each of its checks."""
    header, brace, body = text.partition("{\n")
    if not brace or re.search(r"@[\w$.]+\(\s*%", header):
        raise UnknownCheckError("the function takes arguments, or has results with attributes")
    if "jax.result_info" in header or "->" in header:
        header, body = _without_result(text)
    if _DRAWN.search(body):
        raise UnknownCheckError("it draws numbers that StableHLO leaves to the implementation")
    if "interpreter." in body or "flow." in body:
        raise UnknownCheckError("it runs on several devices, or in IREE alone")
    body, checks, results = _without_checks(body)
    dialect = "stablehlo" if "stablehlo." in body else "arith"
    body = body.replace(_CONSTANT_OP, f"{dialect}.constant")
    values = ", ".join(value for value, _ in results)
    types = ", ".join(type for _, type in results)
    ends = list(_RETURN.finditer(body))
    if not ends:
        raise UnknownCheckError("it does not return")
    body = body[: ends[-1].start()] + f"return {values} : {types}\n}}"
    return f"func.func @main() -> ({types}) {{\n{body}", tuple(checks)


def _without_result(text: str) -> tuple[str, str]:
    start = text.index("{\n", text.index("->")) if "{\n" in text else len(text)
    return text[:start], text[start + 2 :]


def _of_no_vendor(function: str) -> str:
    """Return a function without the ops by which IREE keeps values from being folded."""
    function = _CONSTANT.sub(_constant_op, function)
    function = _CONSTANT_OF_ANY_SIZE.sub(
        r"\1_known = arith.constant \2 : \3\n\1 = tensor.cast \1_known : \3 to \4", function
    )
    while (match := _BARRIER.search(function)) is not None:
        function = function.replace(match[0], "")
        function = re.sub(re.escape(match[1]) + r"\b", match[2], function)
    return function


def _constant_op(match: re.Match[str]) -> str:
    """Return the op of a constant, which of complex numbers is in no dialect of upstream's."""
    return "stablehlo.constant" if match[1] else "arith.constant"


def _without_checks(body: str) -> tuple[str, list[Check], list[tuple[str, str]]]:
    """Return the body without its checks, these, and the values that they compare."""
    checks: list[Check] = []
    results: list[tuple[str, str]] = []
    kept, place = "", 0
    while (match := _CHECK.search(body, place)) is not None:
        end = _end_of_statement(body, match.end())
        kind, statement = match[1], body[match.end() : end]
        made, value, expected, type = _sides(kind, statement, len(checks))
        kept += body[place : match.start()] + "\n" + made
        is_complex = "complex<" in type
        said = _TOLERANCE.search(statement)
        tolerance = None if said is None else float(said[1])
        checks.append(Check(kind in EXACT, is_complex, tolerance))
        for side, which in ((value, "value"), (expected, "expected")):
            lines, parts = _parts(side, type, f"{which}{len(checks)}", is_complex)
            kept += lines
            results += parts
        place = end
    return kept + body[place:], checks, results


def _parts(value: str, type: str, name: str, is_complex: bool) -> tuple[str, list[tuple[str, str]]]:
    if not is_complex:
        return "", [(value, type)]
    part = type.replace("complex<f32>", "f32").replace("complex<f64>", "f64")
    kinds = ("real", "imag")
    lines = [f"%{name}_{k} = stablehlo.{k} {value} : ({type}) -> {part}\n" for k in kinds]
    return "".join(lines), [(f"%{name}_{kind}", part) for kind in kinds]


def _sides(kind: str, statement: str, number: int) -> tuple[str, str, str, str]:
    """Return ops that make the expected value, the value, the expected one, and their type."""
    values = _VALUE.findall(statement)
    if kind in ("eq_const", "almost_eq_const") and values:
        start = statement.index("dense<")
        constant = statement[start : _end_of_statement(statement, start)].strip()
        constant = _FIELDS.sub("", _balanced(constant))
        type = constant.rpartition(" :")[2].strip()
        name = f"%expected_{number}"
        return f"{name} = {_CONSTANT_OP} {constant}\n", values[0], name, type
    if kind in _OF_PAIRS and len(values) == 2:
        found = re.search(r"tensor<[^\s,)]*>", statement)
        if found is not None:
            return "", values[0], values[1], found[0]
    raise UnknownCheckError(f"it has the check {kind}")


def _balanced(text: str) -> str:
    """Return `text` up to the first bracket that closes none of its own."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING and text[place - 1] != "-")
        if depth < 0:
            return text[:place]
        if depth == 0 and letter == ",":
            return text[:place]
    return text


def _end_of_statement(text: str, start: int) -> int:
    """Return the end of the line at which all brackets that were opened are closed."""
    depth = 0
    for place in range(start, len(text)):
        letter = text[place]
        depth += (letter in _OPENING) - (letter in _CLOSING and text[place - 1] != "-")
        if letter == "\n" and depth <= 0 and not _goes_on(text, place):
            return place
    return len(text)


def _goes_on(text: str, place: int) -> bool:
    """Return whether the statement goes on in the line after a line break."""
    before, after = text[:place].rstrip(" "), text[place + 1 :].lstrip(" ")
    return before.endswith((",", ":", "const", "eq")) or after.startswith((":", ","))


def results_of(checks: Sequence[Check]) -> int:
    """Return the number of results that checks read."""
    return sum(check.results for check in checks)
