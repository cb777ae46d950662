"""Random graphs of opaque ops that declare their layouts and costs, as text."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass
class DeclaredGraph:
    """A module whose ops declare their layouts and costs, being drawn line by line."""

    draw: st.DrawFn
    layouts: Sequence[str]
    reorder_costs: dict[tuple[str, str], str]
    op_costs: Sequence[str]
    lines: list[str] = field(default_factory=list[str])

    def name(self, prefix: str = "%v") -> str:
        """Return an unused name."""
        return f"{prefix}{len(self.lines)}"

    def op(self, reads: Sequence[tuple[str, int]], made: Sequence[str], size: int) -> str:
        """Add an op that makes a vector in one of some layouts; `reads` are names and their
        sizes."""
        entries = ", ".join(self._choice(layout, len(reads)) for layout in made)
        names = ", ".join(name for name, _ in reads)
        types = ", ".join(vector(extent) for _, extent in reads)
        name = self.name()
        self.lines.append(
            f'{name} = braid.opaque "o"({names}) {{layouts = [{entries}]}}'
            f" : ({types}) -> {vector(size)}"
        )
        return name

    def _choice(self, made: str, reads: int) -> str:
        wanted = ", ".join(f'"{self.draw(st.sampled_from(self.layouts))}"' for _ in range(reads))
        cost = self.draw(st.sampled_from(self.op_costs))
        return f'{{operands = [{wanted}], results = ["{made}"], cost = {cost} : f64}}'

    def begin_if(self, size: int) -> str:
        """Return the head of a branch with one result."""
        name = self.name()
        self.lines.append(f"{name} = scf.if %c -> ({vector(size)}) {{")
        return name

    def begin_for(self, start: str, size: int) -> tuple[str, str]:
        """Return the head of a loop that carries one vector: its result and the body's
        arguments."""
        name, carried = self.name(), self.name("%i")
        self.lines.append(
            f"{name} = scf.for {carried}n = %lo to %hi step %hi "
            f"iter_args({carried} = {start}) -> ({vector(size)}) {{"
        )
        return name, carried

    def end(self, value: str, size: int, close: str) -> None:
        """Yield a value, and close the block."""
        self.lines += [f"scf.yield {value} : {vector(size)}", close]

    def text(self) -> str:
        """Return the module."""
        reorders = ", ".join(
            f'{{source = "{source}", target = "{target}", cost = {cost} : f64}}'
            for (source, target), cost in self.reorder_costs.items()
        )
        body = "\n".join(self.lines)
        return (
            f"module attributes {{braid.reorder_costs = [{reorders}]}} {{\n"
            f"func.func @main(%c: i1, %lo: index, %hi: index) {{\n{body}\nfunc.return }} }}"
        )


def vector(size: int) -> str:
    """Return the type of vectors with so many floats."""
    return f"tensor<{size}xf32>"
