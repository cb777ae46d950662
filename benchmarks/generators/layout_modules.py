"""Modules of declared ops with four layouts each, as large as one likes, as text."""

from dataclasses import dataclass, field
from itertools import permutations
from random import Random

LAYOUTS = ("l0", "l1", "l2", "l3")
TYPE = "tensor<1x64x56x56xf32>"


@dataclass
class _Writer:
    random: Random
    lines: list[str] = field(default_factory=list[str])
    ops: int = 0

    def op(self, *operands: str) -> str:
        """Return an op that runs in any of the layouts, at a different cost each; returns its
        result."""
        name, seconds = f"%v{self.ops}", self.random.lognormvariate(-8, 1.5)
        choices = ", ".join(
            f"{{operands = [{', '.join([f'{chr(34)}{layout}{chr(34)}'] * len(operands))}], "
            f'results = ["{layout}"], cost = {seconds * self.random.uniform(1, 3):.6e} : f64}}'
            for layout in LAYOUTS
        )
        types = ", ".join([TYPE] * len(operands))
        self.lines.append(
            f'    {name} = braid.opaque "op"({", ".join(operands)}) {{layouts = [{choices}]}} '
            f": ({types}) -> {TYPE}"
        )
        self.ops += 1
        return name

    def residual(self, value: str) -> str:
        """Six ops in a row, and an addition of their input."""
        inner = value
        for _ in range(6):
            inner = self.op(inner)
        return self.op(inner, value)

    def branches(self, value: str) -> str:
        """Four chains of up to three ops, and one op that joins them."""
        ends: list[str] = []
        for length in (1, 2, 3, 2):
            inner = value
            for _ in range(length):
                inner = self.op(inner)
            ends.append(inner)
        return self.op(*ends)

    def loop(self, value: str) -> str:
        """Return a residual block that runs up to twenty times."""
        result, argument = f"%loop{self.ops}", f"%x{self.ops}"
        self.lines.append(
            f"    {result} = scf.for {argument}i = %zero to %n step %n "
            f"iter_args({argument} = {value}) -> ({TYPE}) {{"
        )
        inner = self.residual(argument)
        trips = float(self.random.randint(2, 20))
        self.lines.append(f"    scf.yield {inner} : {TYPE}")
        self.lines.append(f"    }} {{braid.trip_count = {trips} : f64}}")
        return result


def layout_module(ops: int, *, seed: int = 0) -> str:
    """Return a module of at least `ops` declared ops in residual blocks, branches and loops."""
    random = Random(seed)
    writer = _Writer(random)
    value = writer.op()
    while writer.ops < ops:
        block = random.choices((writer.residual, writer.branches, writer.loop), (5, 3, 2))[0]
        value = block(value)
    reorders = ", ".join(
        f'{{source = "{a}", target = "{b}", cost = {random.uniform(1e-4, 4e-4):.3e} : f64}}'
        for a, b in permutations(LAYOUTS, 2)
    )
    body = "\n".join(writer.lines)
    return (
        f"module attributes {{braid.reorder_costs = [{reorders}]}} {{\n"
        f"  func.func @main(%n: index) {{\n    %zero = arith.constant 0 : index\n{body}\n"
        f"    func.return\n  }}\n}}\n"
    )
