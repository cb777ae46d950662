"""One layout for each operand and result of a group."""

from dataclasses import dataclass

from braid.dialects.braid.layout import Layout


@dataclass(frozen=True)
class LayoutChoice:
    """Layouts in which a kernel takes a group: one per operand and one per result."""

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]

    def __str__(self) -> str:
        """Return text such as `acdb,cdba->acdb`, as profiles have it."""
        operands, results = (",".join(map(str, each)) for each in (self.operands, self.results))
        return f"{operands}->{results}"
