"""The window attributes that convolution and pooling share."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.node import Node
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import ceildiv


@dataclass(frozen=True)
class WindowAttributes:
    """Per spatial dim: strides, dilations and padding."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pad_low: tuple[int, ...]
    pad_high: tuple[int, ...]


def window_attributes(
    node: Node, spatial: Sequence[Extent], kernel: Sequence[int]
) -> WindowAttributes:
    """Return the attributes of a node for these spatial extents, with `auto_pad` resolved."""
    rank = len(spatial)
    require_kernel_shape(node, kernel, rank)
    strides, dilations, pads = declared_windows(node, rank)
    auto_pad = node.text("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        missing = [
            (ceildiv(extent, stride) - 1) * stride + dilation * (size - 1) + 1 - extent
            for extent, size, stride, dilation in zip(
                spatial, kernel, strides, dilations, strict=True
            )
        ]
        totals = [max(0, fixed(total, "the padding")) for total in missing]
        smaller, larger = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = (*smaller, *larger) if auto_pad == "SAME_UPPER" else (*larger, *smaller)
    return WindowAttributes(strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]))


def declared_windows(
    node: Node, rank: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return strides, dilations and pads as the node has them.

    Raises BraidError if their number is not that of the dims, or if one is out of its range.
    """
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    for name, values, length, least in (
        ("strides", strides, rank, 1),
        ("dilations", dilations, rank, 1),
        ("pads", pads, 2 * rank, 0),
    ):
        if len(values) != length:
            node.fail(f"'{name}' has {len(values)} entries, expected {length}")
        if min(values, default=least) < least:
            node.fail(f"'{name}' is {list(values)}, expected at least {least}")
    return strides, dilations, pads


def require_kernel_shape(node: Node, kernel: Sequence[int], rank: int) -> None:
    """Raise BraidError if `kernel`, the weight's shape, differs from `kernel_shape` or the rank."""
    given = node.integers("kernel_shape", kernel)
    if tuple(given) != tuple(kernel):
        node.fail(f"kernel_shape is {list(given)}, expected {list(kernel)} as in the weight")
    if min(kernel, default=1) < 1:
        node.fail(f"the windows are {list(kernel)}, expected at least 1 in each dim")
    if len(kernel) != rank:
        node.fail(f"the windows have {len(kernel)} dims, expected {rank} as the input")
