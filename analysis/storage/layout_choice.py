"""One layout for each operand and result of a group."""

from dataclasses import dataclass

from braid.dialects.braid.layout import Layout


@dataclass(frozen=True)
class LayoutChoice:
    """Layouts in which a kernel takes a group: one per operand and one per result."""

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
