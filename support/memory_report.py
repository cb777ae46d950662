"""Report the memory that a function of a compiled model takes, as its plan says."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from braid.support.byte_sizes import format_size


@dataclass(frozen=True)
class TensorMemory:
    """A buffer: the op that writes it, its type, bytes and place."""

    name: str
    type: str
    bytes: int
    space: str
    offset: int


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of one function's arena, outputs and weights; the tensors at the arena's peak.

    Some weights are read from additional `expanded_bytes`, which are filled when the model is
    loaded. No arena for this order of ops is smaller than `lower_bound`. A stream takes
    `slot_bytes` for its channels beside the arenas. `live` are the tensors in the arena while
    `peak_op` runs, `largest` the largest of all; both the largest first.
    """

    function: str
    arena_bytes: int
    lower_bound: int
    output_bytes: int
    weights_bytes: int
    peak_op: str
    live: tuple[TensorMemory, ...]
    largest: tuple[TensorMemory, ...]
    slot_bytes: int = 0
    expanded_bytes: int = 0

    @property
    def activation_bytes(self) -> int:
        """The arena, with the kernels' scratch, and the outputs."""
        return self.arena_bytes + self.output_bytes

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {**asdict(self), "activation_bytes": self.activation_bytes}

    def __str__(self) -> str:
        gap = 1 - self.lower_bound / self.arena_bytes if self.arena_bytes else 0.0
        slots = f", slots of a stream {format_size(self.slot_bytes)}" if self.slot_bytes else ""
        expanded = f" and {format_size(self.expanded_bytes)} at load" if self.expanded_bytes else ""
        lines = [
            f"@{self.function}: arena {format_size(self.arena_bytes)} (bound "
            f"{format_size(self.lower_bound)}, gap {gap:.2%}), outputs "
            f"{format_size(self.output_bytes)}, weights {format_size(self.weights_bytes)}{expanded}"
            f"{slots}",
            f"live at the peak, while '{self.peak_op}' runs:",
            *_rows(self.live),
            "largest tensors:",
            *_rows(self.largest),
        ]
        return "\n".join(lines)


def _rows(tensors: Sequence[TensorMemory]) -> list[str]:
    return [
        f"  {format_size(t.bytes):>10}  {t.space} + {t.offset}  {t.name}  {t.type}" for t in tensors
    ]
