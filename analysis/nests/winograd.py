"""Convolutions as Winograd's algorithms compute them: tiles of several results at once."""

from dataclasses import dataclass
from functools import cached_property

from braid.analysis.nests.convolution import Convolution
from braid.analysis.nests.dims import Stored
from braid.analysis.nests.pointwise import ExtentsOf, InPlace
from braid.analysis.nests.windows import window_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

Strides = tuple[Extent, ...]
"""Elements to the next one along each dim of the images, and to the next row and column."""


@dataclass(frozen=True)
class WinogradNest:
    """`images` × output channels results of height and width `shape`, of all input channels each.

    Open extents of images and their strides are sizes; those of channels are known.
    Windows of 3 × 3; `results` along each dim are computed at once. Images are counted along one
    dim or two; the second is the depth of volumes. A result sums over `planes` of them, which are
    `plane_stride` elements apart. The strides of outputs are those of each leaf of the epilogue and
    of the results, and `vector_steps` the elements to their next vector of channels, 0 where a leaf
    is repeated.
    """

    conv: Convolution
    images: tuple[Extent, ...]
    planes: int
    plane_stride: Extent
    shape: tuple[Extent, Extent]
    results: int
    input_strides: Strides
    output_strides: tuple[Strides, ...]
    vector_steps: tuple[Extent, ...]

    @cached_property
    def grid(self) -> tuple[Extent, Extent]:
        """Return the tiles above each other and beside each other."""
        height, width = (-(-extent // self.results) for extent in self.shape)
        return height, width

    @cached_property
    def tiles(self) -> Extent:
        """Return the tiles of all images."""
        return product_of((*self.images, *self.grid))

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Return the operands of the epilogue that a result may overwrite: not the input."""
        points, conv = self.conv.points, self.conv
        *leaves, result = (
            (*strides, step)
            for strides, step in zip(self.output_strides, self.vector_steps, strict=True)
        )
        return points.in_place(leaves, [result] * len(points.results), (conv.left, conv.right))


def winograd_nest(
    conv: Convolution, choice: LayoutChoice, lanes: int, extents_of: ExtentsOf = shape_of
) -> WinogradNest | None:
    """Return the nest in these layouts, as `window_nest` does that of other windows."""
    found = window_nest(conv.over_windows, choice, lanes, extents_of)
    if found is None or found.has_lines:
        return None
    input, *outputs = found.stored
    windows = conv.windows
    _, _, *depths, height, width = found.shape
    steps = [(1, *windows.strides[: len(depths)]), (0, *windows.dilations[: len(depths)])]
    strides = _strides(input)
    along, planes = (
        tuple(stride * step for stride, step in zip(strides, own, strict=False)) for own in steps
    )
    return WinogradNest(
        conv,
        images=(found.images, *depths),
        planes=windows.size[0] if depths else 1,
        plane_stride=planes[-1],
        shape=(height, width),
        results=choice.operands[conv.right.index].winograd,
        input_strides=(*along, *strides[-2:]),
        output_strides=tuple(map(_strides, outputs)),
        vector_steps=tuple(lanes * tensor.stride(1) for tensor in outputs),
    )


def _strides(tensor: Stored[Extent]) -> Strides:
    """Return the strides of all dims but the channels."""
    return (tensor.stride(0), *(tensor.stride(dim) for dim in range(2, len(tensor.shape))))
