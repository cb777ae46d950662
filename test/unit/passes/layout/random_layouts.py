"""Random modules for layout selection, by seed: all that the IR allows, small enough to try all.

Several functions, nested `scf.if`, `scf.index_switch`, `scf.for` and `scf.while` with values that
they carry and hand on, declared ops of several operands and results with up to seven layouts, ops
and groups whose costs are derived, reorders of which some are missing.
"""

from dataclasses import dataclass, field
from random import Random

TYPE = "tensor<6x4xf32>"
REAL = ("ab", "ba")


@dataclass
class RandomLayouts:
    """One module, drawn line by line."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def text(self) -> str:
        draw = self.random
        self.is_real = draw.random() < 0.25
        most = draw.choice([2, 2, 3, 3, 4, 5, 6, 7])
        self.layouts = [f"l{number}" for number in range(most)]
        if self.is_real:
            self.layouts = [*REAL, *self.layouts[: draw.randint(0, 1)]]
        self.profiled = draw.random() < 0.7
        for number in range(draw.choice([1, 1, 1, 2])):
            self._function(number)
        return f"module attributes {{{self._reorders()}}} {{\n" + "\n".join(self.lines) + "\n}"

    def _reorders(self) -> str:
        draw = self.random
        share = draw.choice([0.3, 0.7, 1.0])
        pairs = [(a, b) for a in self.layouts for b in self.layouts if a != b]
        entries = [
            f'{{source = "{a}", target = "{b}", cost = {draw.randint(0, 6)}.0 : f64}}'
            for a, b in pairs
            if draw.random() < share
        ]
        return f"braid.reorder_costs = [{', '.join(entries)}]"

    def _function(self, number: int) -> None:
        arguments = "%c: i1, %i: index, %n: index"
        values: list[str] = []
        if self.is_real:
            arguments += f", %x: {TYPE}"
            values = ["%x"]
        self.lines.append(f"func.func @f{number}({arguments}) {{")
        self._block(values, 0, self.random.randint(1, 4))
        self.lines += ["func.return", "}"]

    def _new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _block(self, values: list[str], depth: int, size: int) -> list[str]:
        """Add items; return all values that are visible at the end."""
        values = list(values)
        if not values or self.random.random() < 0.7:
            values += self._op(values)
        for _ in range(size):
            kind = self.random.choice(["op", "op", "op", "if", "switch", "for", "while"])
            if kind == "op" or depth == 2:
                values += self._op(values)
            else:
                values += getattr(self, f"_{kind}")(values, depth)
        return values

    def _op(self, values: list[str]) -> list[str]:
        draw = self.random
        if self.is_real and values and draw.random() < 0.6:
            return [self._group(values)]
        reads = [draw.choice(values) for _ in range(draw.randint(0, 2) if values else 0)]
        if draw.random() < 0.1 and values:
            reads = [reads[0], reads[0]] if reads else reads
        results = [self._new() for _ in range(draw.choice([0, 1, 1, 1, 1, 2]) if reads else 1)]
        options = draw.choice([1, 2, 2, 3])
        entries = ", ".join(self._choice(len(reads), len(results)) for _ in range(options))
        left = f"{', '.join(results)} = " if results else ""
        types = ", ".join([TYPE] * len(reads))
        made = ", ".join([TYPE] * len(results))
        self.lines.append(
            f'{left}braid.opaque "o"({", ".join(reads)}) {{layouts = [{entries}], cost = '
            f"{draw.randint(0, 9)}.0 : f64}} : ({types}) -> ({made})"
        )
        return results

    def _choice(self, reads: int, results: int) -> str:
        draw = self.random
        wanted = ", ".join(f'"{draw.choice(self.layouts)}"' for _ in range(reads))
        made = ", ".join(f'"{draw.choice(self.layouts)}"' for _ in range(results))
        cost = f", cost = {draw.randint(0, 9)}.0 : f64" if draw.random() < 0.8 else ""
        return f"{{operands = [{wanted}], results = [{made}]{cost}}}"

    def _group(self, values: list[str]) -> str:
        """Return a group or a bare op, whose layouts and costs are derived."""
        draw, name = self.random, self._new()
        first, second = draw.choice(values), draw.choice(values)
        if draw.random() < 0.3:
            self.lines.append(f"{name} = braid.neg {first} : ({TYPE}) -> {TYPE}")
        else:
            self.lines += [
                f"{name} = braid.fused({first}, {second}) : ({TYPE}, {TYPE}) -> {TYPE} {{",
                f"^bb0(%a{name[1:]}: {TYPE}, %b{name[1:]}: {TYPE}):",
                f"%s{name[1:]} = braid.add %a{name[1:]}, %b{name[1:]} : ({TYPE}, {TYPE}) -> {TYPE}",
                f"braid.yield %s{name[1:]} : {TYPE}",
                "}",
            ]
        return name

    def _yields(self, values: list[str], count: int, op: str = "scf.yield") -> None:
        picked = [self.random.choice(values) for _ in range(count)]
        types = f" : {', '.join([TYPE] * count)}" if count else ""
        self.lines.append(f"{op}{' ' if count else ''}{', '.join(picked)}{types}")

    def _attribute(self, text: str) -> str:
        return f" {{{text}}}" if self.profiled and self.random.random() < 0.8 else ""

    def _if(self, values: list[str], depth: int) -> list[str]:
        count = self.random.randint(0, 1)
        results = [self._new() for _ in range(count)]
        left = f"{results[0]} = " if results else ""
        self.lines.append(f"{left}scf.if %c -> ({', '.join([TYPE] * count)}) {{")
        for close in ("} else {", None):
            self._yields(self._block(values, depth + 1, self.random.randint(0, 1)), count)
            self.lines += [close] if close else []
        probability = self.random.randint(0, 4) / 4
        self.lines.append("}" + self._attribute(f"braid.branch_probability = {probability} : f64"))
        return results

    def _switch(self, values: list[str], depth: int) -> list[str]:
        cases = self.random.randint(1, 2)
        results = [self._new() for _ in range(self.random.randint(0, 1))]
        left = f"{results[0]} = " if results else ""
        made = f" -> {TYPE}" if results else ""
        shares = [self.random.randint(0, 3) for _ in range(cases + 1)]
        total = sum(shares)
        numbers = ", ".join(str(share / total) for share in shares) if total else ""
        known = f"braid.case_probabilities = array<f64: {numbers}>"
        attribute = f" {{{known}}}" if self.profiled and total else ""
        self.lines.append(f"{left}scf.index_switch %i{attribute}{made}")
        for case in [*range(cases), None]:
            self.lines.append("default {" if case is None else f"case {case} {{")
            self._yields(self._block(values, depth + 1, 0), len(results))
            self.lines.append("}")
        return results

    def _for(self, values: list[str], depth: int) -> list[str]:
        result, carried = self._new(), self._new()
        start = self.random.choice(values) if values else self._op(values)[0]
        self.lines.append(
            f"{result} = scf.for {carried}n = %i to %n step %n iter_args({carried} = {start})"
            f" -> ({TYPE}) {{"
        )
        inner = self._block([*values, carried], depth + 1, self.random.randint(0, 1))
        self._yields(inner, 1)
        trips = self.random.randint(0, 4)
        self.lines.append("}" + self._attribute(f"braid.trip_count = {trips}.0 : f64"))
        return [result]

    def _while(self, values: list[str], depth: int) -> list[str]:
        result, before, after = self._new(), self._new(), self._new()
        start = self.random.choice(values) if values else self._op(values)[0]
        self.lines.append(f"{result} = scf.while ({before} = {start}) : ({TYPE}) -> {TYPE} {{")
        self._yields(self._block([*values, before], depth + 1, 0), 1, "scf.condition(%c)")
        self.lines += ["} do {", f"^bb0({after}: {TYPE}):"]
        self._yields(self._block([*values, after], depth + 1, 0), 1)
        trips = self.random.randint(0, 4)
        known = self._attribute(f"braid.trip_count = {trips}.0 : f64")
        self.lines.append(f"}} attributes{known}" if known else "}")
        return [result]


def random_layouts(seed: int) -> str:
    """Return the module of a seed."""
    return RandomLayouts(Random(seed)).text()
