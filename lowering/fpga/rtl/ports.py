"""Arrays as beats of a stream, in whole 32-bit words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import Signedness

from braid.dialects.braid_hls.design import StreamType

Array = npt.NDArray[Any]


def lanes_of_beats(array: Array) -> Array:
    """Return [beats, lanes] of a tensor `[1, C, H, W]` or `[M, C]`, or of several images."""
    return np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


@dataclass(frozen=True)
class StreamPort:
    """Stream number `number` on its side of a design."""

    number: int
    stream: StreamType

    @property
    def bits(self) -> int:
        """Bits of a beat."""
        return self.stream.bits

    @property
    def words(self) -> int:
        """Words of 32 bits for a beat."""
        return -(-self.bits // 32)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of a lane; its width is 8, 16, 32 or 64."""
        unsigned = self.stream.element.signedness.data == Signedness.UNSIGNED
        return np.dtype(f"{'u' if unsigned else 'i'}{self.stream.element.width.data // 8}")

    def beats(self, array: Array) -> Array:
        """Return the words [beats, words] of a tensor `[1, C, H, W]` or `[M, C]`, or of several
        images.
        """
        lanes = np.ascontiguousarray(lanes_of_beats(array).astype(self.dtype))
        as_bytes = lanes.view(np.uint8).reshape(len(lanes), -1)
        padded = np.zeros((len(lanes), self.words * 4), np.uint8)
        padded[:, : as_bytes.shape[1]] = as_bytes
        return padded.view("<u4")

    def empty(self, beats: int) -> Array:
        """Return the words for this many beats."""
        return np.zeros((beats, self.words), np.uint32)

    def lanes(self, words: Array) -> Array:
        """Return [beats, lanes] of what `empty` was filled with."""
        size = self.bits // 8
        used = np.ascontiguousarray(words.view(np.uint8)[:, :size])
        return used.view(self.dtype.newbyteorder("<")).astype(self.dtype)

    def tensor(self, words: Array, shape: tuple[int, ...]) -> Array:
        """Return the tensor of this shape, whose beats these are."""
        pixels = self.lanes(words)
        moved = (shape[0], *shape[2:], shape[1])
        return np.ascontiguousarray(np.moveaxis(pixels.reshape(moved), -1, 1))
