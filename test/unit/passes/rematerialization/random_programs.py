"""Random functions for recomputation by thresholds, by seed.

Nested `scf.if`, `scf.index_switch`, `scf.for` and `scf.while` that read what blocks around them
make, carry values and hand them on; views, constants, products, opaque ops, ops without results.
"""

from dataclasses import dataclass, field
from random import Random

Shape = tuple[int, ...]

ARGUMENTS: list[tuple[str, Shape]] = [("a", (4, 1)), ("b", (1, 8)), ("c", (4, 8)), ("d", (8, 8))]

HEAD = """%flag = tensor.extract %flags[] : tensor<i1>
%long = tensor.extract %numbers[] : tensor<i64>
%number = arith.index_cast %long : i64 to index
%zero = arith.constant 0 : index
%one = arith.constant 1 : index"""


def type_of(shape: Shape) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


@dataclass
class RandomProgram:
    """One function, drawn line by line."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    def text(self, size: int) -> str:
        self.opaque = self.random.random() < 0.3
        self.shapes |= {f"%{name}": shape for name, shape in ARGUMENTS}
        seen = self._block([*self.shapes], 0, size)
        results = self.random.sample(seen[-3:], self.random.randint(1, 2))
        arguments = ", ".join(f"%{name}: {type_of(shape)}" for name, shape in ARGUMENTS)
        types = ", ".join(type_of(self.shapes[name]) for name in results)
        head = f"func.func @main(%flags: tensor<i1>, %numbers: tensor<i64>, {arguments})"
        body = "\n".join(self.lines)
        end = f"func.return {', '.join(results)} : {types}"
        return f"{head} -> ({types}) {{\n{HEAD}\n{body}\n{end}\n}}"

    def _new(self, shape: Shape) -> str:
        name = f"%v{len(self.shapes)}"
        self.shapes[name] = shape
        return name

    def _block(self, seen: list[str], depth: int, size: int) -> list[str]:
        """Add `size` items; return all values that are visible at the end."""
        seen = list(seen)
        for _ in range(size):
            kind = self.random.choice(["op", "op", "op", "op", "if", "switch", "for", "while"])
            if kind == "op" or depth == 2:
                self._op(seen)
            else:
                getattr(self, f"_{kind}")(seen, depth)
        return seen

    def _pick(self, seen: list[str]) -> str:
        return self.random.choice(seen[-4:] if self.random.random() < 0.6 else seen)

    def _add(self, seen: list[str], op: str, operands: list[str], shape: Shape, data: str) -> None:
        types = ", ".join(type_of(self.shapes[operand]) for operand in operands)
        result = self._new(shape)
        data = ", ".join(filter(None, [f'braid.name = "{result[1:]}"', data]))
        self.lines.append(
            f"{result} = braid.{op}{'(' if 'opaque' in op else ' '}{', '.join(operands)}"
            f"{')' if 'opaque' in op else ''} {{{data}}} : ({types}) -> {type_of(shape)}"
        )
        seen.append(result)

    def _op(self, seen: list[str]) -> None:
        draw, first = self.random, self._pick(seen)
        shape = self.shapes[first]
        kind = draw.choice(["one", "two", "two", "reduce", "reshape", "product", "constant"])
        if self.opaque and draw.random() < 0.4:
            self._opaque(seen, first)
        elif kind == "reduce":
            data = 'kind = "maximum", dims = array<i64: 1>'
            self._add(seen, "reduce", [first], (shape[0], 1), data)
        elif kind == "reshape":
            self._add(seen, "reshape", [first], shape[::-1] if 1 in shape else shape, "")
            self._add(seen, "neg", [seen[-1]], self.shapes[seen[-1]], "")  # No view is unread.
        elif kind == "product" and shape == (4, 8):
            self._add(seen, "matmul", [first, "%d"], shape, "")
        elif kind == "constant":
            name = self._new((4, 1))
            type = type_of((4, 1))
            self.lines.append(f"{name} = braid.constant {{value = dense<1.0> : {type}}} : {type}")
            seen.append(name)
        else:
            fits = [v for v in seen if _fit(self.shapes[v], shape)]
            second = draw.choice(fits)
            joined = tuple(map(max, shape, self.shapes[second]))
            if kind == "one" or not joined:
                self._add(seen, draw.choice(["neg", "abs", "floor"]), [first], shape, "")
            else:
                op = draw.choice(["add", "sub", "maximum"])
                self._add(seen, op, [first, second], joined, "")

    def _opaque(self, seen: list[str], first: str) -> None:
        if self.random.random() < 0.2:
            self.lines.append(f'braid.opaque "o"({first}) : ({type_of(self.shapes[first])}) -> ()')
            return
        data = ""
        if self.random.random() < 0.5:
            data = f"bytes = array<i64: {self.random.choice([8, 100, 300])}>"
        shape = self.random.choice([(4, 1), (4, 8)])
        self._add(seen, 'opaque "o"', [first, self._pick(seen)], shape, data)

    def _like(self, seen: list[str], shape: Shape) -> str:
        """Return a visible value of `shape`; there is an argument of each shape."""
        return self.random.choice([v for v in seen if self.shapes[v] == shape][-5:])

    def _shape(self) -> Shape:
        return self.random.choice([(4, 1), (4, 8)])

    def _yield(self, seen: list[str], shape: Shape, op: str = "scf.yield") -> None:
        self.lines.append(f"{op} {self._like(seen, shape)} : {type_of(shape)}")

    def _if(self, seen: list[str], depth: int) -> None:
        shape = self._shape()
        result = self._new(shape)
        self.lines.append(f"{result} = scf.if %flag -> ({type_of(shape)}) {{")
        self._yield(self._block(seen, depth + 1, self.random.randint(1, 2)), shape)
        self.lines.append("} else {")
        self._yield(self._block(seen, depth + 1, self.random.randint(0, 1)), shape)
        self.lines.append("}")
        seen.append(result)

    def _switch(self, seen: list[str], depth: int) -> None:
        shape = self._shape()
        result = self._new(shape)
        self.lines.append(f"{result} = scf.index_switch %number -> {type_of(shape)}")
        for head in ("case 0", "case 3", "default"):
            self.lines.append(f"{head} {{")
            self._yield(self._block(seen, depth + 1, self.random.randint(0, 1)), shape)
            self.lines.append("}")
        seen.append(result)

    def _for(self, seen: list[str], depth: int) -> None:
        shape = self._shape()
        start = self._like(seen, shape)
        result, carried = self._new(shape), self._new(shape)
        self.lines.append(
            f"{result} = scf.for {carried}n = %zero to %number step %one "
            f"iter_args({carried} = {start}) -> ({type_of(shape)}) {{"
        )
        self._yield(self._block([*seen, carried], depth + 1, self.random.randint(1, 2)), shape)
        self.lines.append("}")
        seen.append(result)

    def _while(self, seen: list[str], depth: int) -> None:
        shape = self._shape()
        start, type = self._like(seen, shape), type_of(shape)
        result, before, after = (self._new(shape) for _ in range(3))
        self.lines.append(
            f"{result}, {result}n = scf.while ({before} = {start}, {before}n = %zero) : "
            f"({type}, index) -> ({type}, index) {{"
        )
        inner = self._block([*seen, before], depth + 1, self.random.randint(0, 1))
        self.lines += [
            f"{before}c = arith.cmpi slt, {before}n, %number : index",
            f"scf.condition({before}c) {self._like(inner, shape)}, {before}n : {type}, index",
            f"}} do {{\n^bb0({after}: {type}, {after}n: index):",
        ]
        inner = self._block([*seen, after], depth + 1, self.random.randint(0, 1))
        self.lines += [
            f"{after}m = arith.addi {after}n, %one : index",
            f"scf.yield {self._like(inner, shape)}, {after}m : {type}, index",
            "}",
        ]
        seen.append(result)


def _fit(first: Shape, second: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(first, second, strict=True))


def random_program(seed: int) -> tuple[str, bool]:
    """Return the function of a seed, and whether it has opaque ops."""
    random = Random(seed)
    program = RandomProgram(random)
    text = program.text(random.randint(3, 9))
    return text, "braid.opaque" in text
