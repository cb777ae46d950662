"""Statements of a loop nest, as the estimator sees them and as C++."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.dialects.braid.scalar import Apply, Argument, Literal, Scalar
from braid.solvers.hls.nests import Affine, Condition, Loop, Nest, Op
from braid.support.errors import UnsupportedError

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_FUNCTIONS = {
    "maximum": "maximum",
    "minimum": "minimum",
    "exp": "expf",
    "log": "logf",
    "sqrt": "sqrtf",
    "tanh": "tanhf",
    "abs": "fabsf",
    "erf": "erff",
    "floor": "floorf",
    "ceil": "ceilf",
    "sin": "sinf",
    "cos": "cosf",
    "pow": "powf",
}
_WITH_KNOWN = {"neg": ("sub", 0.0), "reciprocal": ("div", 1.0)}
"""The operations that become others with a known first operand."""
HELPERS = """// NaN is the result where an operand is NaN.
static float maximum(float a, float b) {
  return a > b || a != a ? a : b;
}

static float minimum(float a, float b) {
  return a < b || a != a ? a : b;
}
"""
Operand = int | float
"""The number of a statement before, or a known number."""


@dataclass(frozen=True)
class Where:
    """Unrolled loops around statements, and conditions under which all of them happen."""

    bounds: tuple[Condition, ...] = ()
    unrolled: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class Statement:
    """`op`, whose operands leave out known numbers, and all operands in their places."""

    op: Op
    operands: tuple[Operand, ...]
    own_guards: tuple[Condition, ...]
    otherwise: float | None = None
    """The value of a load whose guards do not hold."""


@dataclass
class Body:
    """Statements that are unrolled together; all of them if `bounds` hold."""

    loops: tuple[Loop, ...]
    interval: int
    statements: list[Statement] = field(default_factory=list[Statement])

    def add(
        self,
        kind: str,
        where: Where,
        operands: Sequence[Operand] = (),
        *,
        name: str = "",
        index: Sequence[Affine] = (),
        guards: Sequence[Condition] = (),
        otherwise: float | None = None,
    ) -> int:
        """Return the number of the new statement."""
        known = tuple(one for one in operands if isinstance(one, int))
        every = (*where.bounds, *guards)
        op = Op(kind, known, name, tuple(index), every, where.unrolled)
        self.statements.append(Statement(op, tuple(operands), tuple(guards), otherwise))
        return len(self.statements) - 1

    def scalar(self, body: Scalar, arguments: Sequence[Operand], where: Where) -> Operand:
        """Return the value of a body. Raises UnsupportedError for an operation without C++."""
        match body:
            case Argument():
                return arguments[body.index]
            case Literal():
                return float(body.value)
            case Apply(operation, inner):
                if operation == "cast":
                    return self.scalar(inner[0], arguments, where)
                if operation in _WITH_KNOWN:
                    operation, first = _WITH_KNOWN[operation]
                    inner = (Literal(first, body.type), *inner)
                if operation not in _INFIX | _FUNCTIONS:
                    raise UnsupportedError(f"'{operation}' in HLS C++ in f32")
                values = [self.scalar(one, arguments, where) for one in inner]
                return self.add(operation, where, values)
            case _:
                raise UnsupportedError("an index that is computed, in HLS C++ in f32")

    def nest(self, name: str) -> Nest:
        """Return the nest for the estimator."""
        return Nest(name, self.loops, self.interval, tuple(one.op for one in self.statements))

    def text(self) -> Iterator[str]:
        """Yield the loops with their pragmas, and their bodies."""
        for depth, loop in enumerate(self.loops):
            yield "  " * depth + _header(loop)
        yield f"#pragma HLS PIPELINE II={self.interval}"
        inside = "  " * len(self.loops)
        yield from (line if line[0] == "#" else inside + line for line in self._unrolled())
        yield from ("  " * depth + "}" for depth in reversed(range(len(self.loops))))

    def _unrolled(self) -> Iterator[str]:
        """Return the statements, with equal successive unrolled loops merged into one nest."""
        start = 0
        while start < len(self.statements):
            first = self.statements[start]
            loops, bounds = first.op.unrolled, _bounds(first)
            end = start
            while end < len(self.statements) and (
                (self.statements[end].op.unrolled, _bounds(self.statements[end])) == (loops, bounds)
            ):
                end += 1
            depth = 0
            for loop in loops:
                yield "  " * depth + _header(loop)
                yield "#pragma HLS UNROLL"
                depth += 1
            if bounds:
                yield "  " * depth + f"if ({_condition(bounds)}) {{"
                depth += 1
            for number in range(start, end):
                for line in self._statement(number):
                    yield "  " * depth + line
            while depth:
                depth -= 1
                yield "  " * depth + "}"
            start = end

    def _statement(self, number: int) -> Iterator[str]:
        one = self.statements[number]
        text = self._expression(number)
        if one.op.kind in ("store", "write"):
            if one.own_guards:
                yield f"if ({_condition(one.own_guards)}) {{"
                yield f"  {text};"
                yield "}"
            else:
                yield f"{text};"
            return
        yield f"float v{number} = {text};"

    def _expression(self, number: int) -> str:
        one = self.statements[number]
        shown = [f"v{v}" if isinstance(v, int) else _literal(v) for v in one.operands]
        place = one.op.name + "".join(f"[{affine_text(at)}]" for at in one.op.index)
        match one.op.kind:
            case "load" if one.otherwise is not None:
                return f"{_condition(one.own_guards)} ? {place} : {_literal(one.otherwise)}"
            case "load":
                return place
            case "read":
                return f"{place}.read()"
            case "store":
                return f"{place} = {shown[0]}"
            case "write":
                return f"{place}.write({shown[0]})"
            case kind if kind in _INFIX:
                return f"{shown[0]} {_INFIX[kind]} {shown[1]}"
            case kind:
                return f"{_FUNCTIONS[kind]}({', '.join(shown)})"


def _bounds(one: Statement) -> tuple[Condition, ...]:
    count = len(one.op.guards) - len(one.own_guards)
    return one.op.guards[:count]


def _header(loop: Loop) -> str:
    return f"for (int {loop.name} = 0; {loop.name} < {loop.trips}; {loop.name}++) {{"


def _condition(guards: Sequence[Condition]) -> str:
    return " && ".join(
        f"{affine_text(one.value)} {'>=' if one.at_least else '=='} 0" for one in guards
    )


def affine_text(value: Affine) -> str:
    """Return an affine expression as text of C++."""
    terms = [name if factor == 1 else f"{name} * {factor}" for name, factor in value.terms]
    if value.constant or not terms:
        terms.append(str(value.constant))
    return " + ".join(terms)


def _literal(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f"
