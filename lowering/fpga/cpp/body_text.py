"""The body of a stage as C++ statements: each op one loop over lanes, which the tool unrolls."""

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid_hls.body import (
    AccumulateOp,
    CombineOp,
    ComputeOp,
    Integers,
    JoinOp,
    SelectOp,
    TableOp,
    bits_of,
    lanes_of,
)
from braid.dialects.braid_hls.stage import Loops
from braid.support.errors import UnsupportedError

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
MOST_BITS = 64
"""The most bits of a number, as `ap_int.h` beside the text supports."""


class BodyText:
    """Names of a body's values, and the statements that compute them."""

    def __init__(self, loops: Loops) -> None:
        self.loops = loops
        self.names: dict[SSAValue, str] = {}
        self.outside: list[str] = []
        """Constants and registers, in front of the loop."""

    def name(self, value: SSAValue) -> str:
        """Return the name of the array with a value's lanes."""
        return self.names.setdefault(value, f"v{len(self.names)}")

    def statements(self, body: Block) -> Iterator[str]:
        """Return the statements of one fold; `group`, `part` and `fold` are its numbers."""
        for op in body.ops:
            yield from self._statements(op)

    def _statements(self, op: Operation) -> Iterator[str]:
        match op:
            case TableOp():
                table = self._constants(op.rows, "ap_int", bits_of(op.output))
                yield from self._lanes(op.output, f"{table}[{self._index(op.by.data)}][i]")
            case SelectOp():
                indices = self._constants(op.rows, "int", 0)
                row = f"{indices}[{self._index(op.by.data)}][i]"
                yield from self._lanes(op.output, f"{self.name(op.input)}[{row}]")
            case JoinOp():
                yield from self._join(op)
            case ComputeOp():
                operands = [f"{self.name(value)}[i]" for value in op.inputs]
                yield from self._lanes(
                    op.output, computed(op.kind.data, *operands, bits=bits_of(op.output))
                )
            case CombineOp():
                yield from self._combine(op)
            case AccumulateOp():
                yield from self._accumulate(op)
            case _:
                pass

    def _index(self, by: str) -> str:
        counters = {"channel": "group", "reduction": "part", "both": "fold", "image": "it"}
        return counters.get(by, "0")

    def _constants(self, rows: Integers, kind: str, bits: int) -> str:
        name = f"t{len(self.outside)}"
        shown = ", ".join("{" + ", ".join(str(int(one)) for one in row) + "}" for row in rows)
        element = kind if kind == "int" else f"{kind}<{bits}>"
        shape = f"[{rows.shape[0]}][{rows.shape[1]}]"
        self.outside.append(f"static const {element} {name}{shape} = {{{shown}}};")
        return name

    def _declared(self, value: SSAValue) -> str:
        bits = bits_of(value)
        if bits > MOST_BITS:
            raise UnsupportedError(
                f"numbers of {bits} bits in HLS C++, which has at most {MOST_BITS}",
                hint="'lower-hls-to-verilog' has numbers of any size",
            )
        return f"ap_int<{bits}> {self.name(value)}[{lanes_of(value)}];"

    def _lanes(self, value: SSAValue, expression: str) -> Iterator[str]:
        yield self._declared(value)
        yield f"#pragma HLS ARRAY_PARTITION variable={self.name(value)} complete"
        yield f"for (int i = 0; i < {lanes_of(value)}; i++) {{"
        yield "#pragma HLS UNROLL"
        yield f"  {self.name(value)}[i] = {expression};"
        yield "}"

    def _join(self, op: JoinOp) -> Iterator[str]:
        yield self._declared(op.output)
        yield f"#pragma HLS ARRAY_PARTITION variable={self.name(op.output)} complete"
        before = 0
        for value in op.inputs:
            yield f"for (int i = 0; i < {lanes_of(value)}; i++) {{"
            yield "#pragma HLS UNROLL"
            yield f"  {self.name(op.output)}[i + {before}] = {self.name(value)}[i];"
            yield "}"
            before += lanes_of(value)

    def _combine(self, op: CombineOp) -> Iterator[str]:
        given, lanes = lanes_of(op.input), lanes_of(op.output)
        source, target = self.name(op.input), self.name(op.output)
        size = given // lanes
        yield from self._lanes(op.output, f"{source}[i * {size}]")
        if size > 1:
            yield f"for (int i = 0; i < {lanes}; i++) {{"
            yield "#pragma HLS UNROLL"
            yield f"  for (int k = 1; k < {size}; k++) {{"
            yield "#pragma HLS UNROLL"
            more = computed(
                op.kind.data, f"{target}[i]", f"{source}[i * {size} + k]", bits=bits_of(op.output)
            )
            yield f"    {target}[i] = {more};"
            yield "  }"
            yield "}"

    def _accumulate(self, op: AccumulateOp) -> Iterator[str]:
        register = f"sum{len(self.outside)}"
        lanes, bits = lanes_of(op.output), bits_of(op.output)
        over_image = self.loops.over_image
        groups = self.loops.folds[0] if over_image else 1
        # Parts of a sum follow each other, and the groups of an image's sums are in between.
        self.outside += [
            f"ap_int<{bits}> {register}s[{groups}][{lanes}];",
            f"#pragma HLS ARRAY_PARTITION variable={register}s complete dim=0",
        ]
        register += f"s[{'group' if groups > 1 else 0}]"
        begins = "part == 0 && position == 0" if over_image else "part == 0"
        given = f"{self.name(op.input)}[i]"
        more = computed(op.kind.data, f"{register}[i]", given, bits=bits)
        yield from self._lanes(
            op.output, f"{begins} ? ap_int<{bits}>({given}) : ap_int<{bits}>({more})"
        )
        yield f"for (int i = 0; i < {lanes}; i++) {{"
        yield "#pragma HLS UNROLL"
        yield f"  {register}[i] = {self.name(op.output)}[i];"
        yield "}"


def computed(kind: str, *operands: str, bits: int) -> str:
    """Return an expression over numbers that are extended by their sign."""
    if kind in _INFIX:
        left, right = (f"ap_int<{bits}>({one})" for one in operands)
        return f"{left} {_INFIX[kind]} {right}"
    left, *rest = operands
    match kind:
        case "maximum":
            return f"{left} > {rest[0]} ? ap_int<{bits}>({left}) : ap_int<{bits}>({rest[0]})"
        case "minimum":
            return f"{left} < {rest[0]} ? ap_int<{bits}>({left}) : ap_int<{bits}>({rest[0]})"
        case "shift_right":
            return f"{left} >> {rest[0]}"
        case "wrap_unsigned":
            return f"ap_int<{bits}>(ap_uint<{bits - 1}>({left}))"
        case _:
            return left
