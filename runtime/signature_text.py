"""Texts of the inputs and outputs of a model, as Python shows them."""

from collections.abc import Sequence

from braid.runtime.buffers import describe_shape
from braid.runtime.manifest import TensorSpec


def signature_text(specs: Sequence[TensorSpec], sizes: Sequence[tuple[str, ...]] = ()) -> str:
    """Return names with element types and shapes, such as `x: float32[batch<=4, 3, ?<=8]`.

    `sizes` are texts of the sizes of each; without them, names of dims are shown.
    """
    pairs = zip(specs, sizes or ((),) * len(specs), strict=True)
    return ", ".join(f"{s.name}: {s.dtype}[{describe_shape(s, own)}]" for s, own in pairs)
