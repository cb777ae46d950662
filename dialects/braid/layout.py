"""Parse oneDNN-style layout tags and compute their index mathematics. No IR.

A tag lists the dims of storage from outermost to innermost. Letters are logical dims (`a` is dim
0); a capital says that the dim is split into blocks, whose inner dims follow as a size and a
letter: `abcd` = NCHW, `acdb` = NHWC, `aBcd16b` = NCHW16c, `ba` = column-major. Blocked dims are
padded to whole blocks and the tail is zero. The suffix `:buffer` marks linear memory as opposed to
a device's tiled memory. The suffix `:winograd4` says that the last two dims hold the windows of a
convolution, transformed for 4 × 4 results at once (see `winograd`). The suffix `:pairs` says that
the bytes of the last block's dim are in orders of their own, whose products can be added up in
pairs (see `byte_pairs`); the orders follow the blocks.

Source of the notation: oneDNN developer guide, "Understanding Memory Formats".
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir.affine import AffineExpr, AffineMap

from braid.dialects.braid.byte_pairs import order_bytes
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent, ExtentT

ALIASES = {
    "NCHW": "abcd",
    "NHWC": "acdb",
    "OIHW": "abcd",
    "HWIO": "cdba",
    "NCHW8c": "aBcd8b",
    "NCHW16c": "aBcd16b",
    "row_major": "ab",
    "col_major": "ba",
    "rowmajor": "ab",
    "colmajor": "ba",
}
"""Names accepted on input; printed as the tag."""

DYNAMIC = DYNAMIC_INDEX
"""An open dim, `?` in a type."""

MOST_DIMS = 26
"""Dims that a tensor may have: each needs a letter of its own in a tag."""

_ABSTRACT = re.compile(r"[A-Za-z_]\w*[0-9]", re.ASCII)
"""An abstract layout ends in a digit, which no tag does, so a mistyped tag is still an error."""

_TAG = re.compile(
    r"(?P<outer>[A-Za-z]*)(?P<inner>(?:[1-9][0-9]*[a-z])*)"
    r"(?P<storage>:buffer|:pairs|:winograd(?P<winograd>[24]))?"
)


_WINDOW_DIMS = 4
"""Dims of a weight: channels of outputs and inputs, height and width of the window."""


@dataclass(frozen=True)
class StorageDim:
    """One dim of storage: the part of logical dim `dim` that counts in steps of `step`.

    Its index is `(i floordiv step) mod extent` for logical index i; `extent` is None for the
    outermost part of a dim, whose extent follows from the type.
    """

    dim: int
    step: int
    extent: int | None


class InvalidLayout(ValueError):
    """A tag that means nothing; the message says why."""


class AbstractLayoutError(UnsupportedError, InvalidLayout):
    """An abstract layout was asked for its storage, which is unknown."""


class TransformedLayoutError(UnsupportedError, InvalidLayout):
    """A layout was asked where an element lies, which in it depends on the elements."""


@dataclass(frozen=True)
class Layout:
    """A parsed layout tag. Build it with `Layout.parse`.

    An abstract layout (`Layout.abstract`) is only a name: it can be compared, and everything
    about its storage raises InvalidLayout.
    """

    tag: str
    """Equivalent to the other fields, except for the strides."""
    _dims: tuple[StorageDim, ...] | None = field(compare=False)
    is_buffer: bool = field(compare=False)
    strides: tuple[int, ...] | None = field(default=None, compare=False)
    """Elements between neighbours along each dim of storage, where the tensor is a box inside a
    larger one. Where a tensor lies does not tell layouts apart."""
    winograd: int = field(default=0, compare=False)
    """Results along a dim for which windows are transformed; 0 where elements are stored."""
    pairs: bool = field(default=False, compare=False)
    """True if bytes are in orders in which pairs of them can be multiplied."""

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(text: str) -> "Layout":
        """Return the layout that `text` (a tag or an alias) names.

        Raises InvalidLayout for anything else.
        """
        name, separator, storage = text.partition(":")
        tag = ALIASES.get(name, name) + separator + storage
        match = _TAG.fullmatch(tag)
        if match is None:
            raise InvalidLayout(f"'{text}' is neither a layout tag nor one of {sorted(ALIASES)}")
        outer = match["outer"]
        inner = [(int(n), c) for n, c in re.findall(r"([0-9]+)([a-z])", match["inner"])]
        rank = len(outer)
        if sorted(outer.lower()) != [chr(ord("a") + i) for i in range(rank)]:
            raise InvalidLayout(f"'{text}' does not name each of its {rank} dims exactly once")
        blocked = {c for _, c in inner}
        if blocked != {c.lower() for c in outer if c.isupper()}:
            raise InvalidLayout(f"'{text}' must have an inner block for each capital and no other")
        winograd = int(match["winograd"] or 0)
        if winograd and rank < _WINDOW_DIMS:
            raise InvalidLayout(f"'{text}' has {rank} dims, of which none are windows")
        if winograd and blocked & set(sorted(outer.lower())[-2:]):
            raise InvalidLayout(f"'{text}' has windows in blocks, which are transformed whole")
        pairs = match["storage"] == ":pairs"
        if pairs and (len(inner) < 2 or inner[-1][0] % 2 or inner[-1][1] == inner[-2][1]):
            raise InvalidLayout(f"'{text}' has no inner blocks of columns and of pairs")
        dims, is_buffer = _storage_dims(outer, inner), match["storage"] == ":buffer"
        return Layout(tag, dims, is_buffer, winograd=winograd, pairs=pairs)

    @staticmethod
    @lru_cache(maxsize=4096)
    def abstract(name: str) -> "Layout":
        """Return a layout of which only the name is known, such as `l0`.

        Ops that declare their costs use it.

        Raises InvalidLayout unless `name` is an identifier that ends in a digit.
        """
        if _ABSTRACT.fullmatch(name) is None:
            raise InvalidLayout(f"'{name}' is not a name of an abstract layout, such as 'l0'")
        return Layout(name, None, False)

    @staticmethod
    @lru_cache(maxsize=4096)
    def named(text: str) -> "Layout":
        """Return the layout that `text` names: a tag, an alias, or an abstract layout.

        Raises InvalidLayout for anything else.
        """
        return Layout.abstract(text) if _ABSTRACT.fullmatch(text) else Layout.parse(text)

    @staticmethod
    @lru_cache
    def row_major(rank: int) -> "Layout":
        """Return the layout of a tensor without encoding."""
        return Layout.parse(_letters(0, rank))

    @staticmethod
    @lru_cache
    def channels_last(rank: int) -> "Layout":
        """Return the layout of feature maps with channels innermost, such as `acdb` (NHWC)."""
        return Layout.parse(f"a{_letters(2, rank)}b")

    @staticmethod
    @lru_cache
    def channel_blocks(rank: int, channels: int) -> "Layout":
        """Return the layout of feature maps in blocks of `channels`: `aBcd16b`.

        A block has as many channels as a vector has lanes.
        """
        return Layout.parse(f"aB{_letters(2, rank)}{channels}b")

    @property
    def is_abstract(self) -> bool:
        """True if only the name is known."""
        return self._dims is None

    @property
    def is_transformed(self) -> bool:
        """True if the storage depends on the values of the elements, which must then be known."""
        return bool(self.winograd) or self.pairs

    @property
    def dims(self) -> tuple[StorageDim, ...]:
        """Dims of storage from outermost to innermost.

        Raises InvalidLayout if it is abstract, or transformed.
        """
        if self.is_transformed:
            what = "transformed windows" if self.winograd else "bytes in orders of their own"
            raise TransformedLayoutError(
                f"layout '{self.tag}' stores {what}, in which no element has a place",
                hint="only weights that are known at compile time are stored so",
            )
        return self._stored

    @property
    def _stored(self) -> tuple[StorageDim, ...]:
        if self._dims is None:
            raise AbstractLayoutError(
                f"layout '{self.tag}' is abstract: how it is stored is not known",
                hint="declare layouts that say that, such as 'NHWC' or 'aBcd16b'",
            )
        return self._dims

    @property
    def untransformed(self) -> "Layout":
        """The same order and blocks of the elements themselves."""
        return Layout.parse(self.tag.partition(":")[0]) if self.is_transformed else self

    @property
    def pair_dims(self) -> tuple[int, int]:
        """The dims of columns and of pairs to which the last two blocks belong, if `pairs`."""
        return self._stored[-2].dim, self._stored[-1].dim

    @cached_property
    def rank(self) -> int:
        """Logical dims of a tensor in this layout. Raises InvalidLayout if abstract."""
        return len({dim.dim for dim in self._stored})

    @cached_property
    def is_row_major(self) -> bool:
        """True if a tensor of this layout is stored like one without encoding."""
        return not self.is_abstract and self == Layout.row_major(self.rank)

    @cached_property
    def is_permutation(self) -> bool:
        """True if no dim is blocked."""
        return len(self._stored) == self.rank

    @cached_property
    def permutation(self) -> tuple[int, ...]:
        """Logical dim of each outer storage dim; blocks are left out."""
        return tuple(d.dim for d in self._stored if d.extent is None)

    def block(self, dim: int) -> int:
        """Return the elements of logical dim `dim` in one block, 1 if it is not split."""
        return math.prod(d.extent for d in self._stored if d.dim == dim and d.extent is not None)

    def storage_shape(self, shape: Sequence[ExtentT]) -> tuple[ExtentT, ...]:
        """Return the shape in memory of a tensor of logical `shape`; open dims stay open."""
        extents: Sequence[Extent] = shape
        if self.winograd:
            extents = (*shape[:-2], *(extent + self.winograd - 1 for extent in shape[-2:]))
        stored = tuple(_storage_extent(d, extents[d.dim]) for d in self._stored)
        if self.pairs and DYNAMIC not in stored:
            known = cast(Sequence[int], extents)
            stored = (math.prod(cast(Sequence[int], stored)) + self._order_bytes(known),)
        return cast(tuple[ExtentT, ...], stored)

    def _order_bytes(self, shape: Sequence[int]) -> int:
        columns, depth = self.pair_dims
        positions = math.prod(shape) // max(1, shape[columns] * shape[depth])
        return order_bytes(
            shape[columns], positions, shape[depth] + -shape[depth] % self.block(depth)
        )

    def storage_strides(self, shape: Sequence[ExtentT]) -> tuple[ExtentT, ...]:
        """Return the elements between neighbours along each dim of storage."""
        if self.strides is not None:
            return cast(tuple[ExtentT, ...], self.strides)
        stored = cast(tuple[int, ...], self.storage_shape(shape))  # or sizes: products of either
        strides = tuple(math.prod(stored[dim + 1 :]) for dim in range(len(stored)))
        return cast(tuple[ExtentT, ...], strides)

    def with_strides(self, strides: tuple[int, ...] | None) -> "Layout":
        """Return the same layout for a tensor inside a larger one; None for one on its own."""
        return replace(self, strides=strides)

    def storage_index(self, index: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
        """Return the storage index of the element at logical `index`."""
        return tuple(_storage_expr(d, index[d.dim]) for d in self.dims)

    @cached_property
    def storage_map(self) -> AffineMap:
        """`storage_index` as a map from the logical to the storage index."""
        logical = [AffineExpr.dimension(i) for i in range(self.rank)]
        return AffineMap(self.rank, 0, self.storage_index(logical))

    def __str__(self) -> str:
        return self.tag


def _letters(begin: int, end: int) -> str:
    """Return the letters of the dims from `begin` to `end`."""
    return "".join(chr(ord("a") + dim) for dim in range(begin, end))


def _storage_dims(outer: str, inner: Sequence[tuple[int, str]]) -> tuple[StorageDim, ...]:
    """Return outer dims, then blocks; a block's step is the product of those after it."""
    steps = dict.fromkeys(outer.lower(), 1)
    blocks: list[StorageDim] = []
    for size, letter in reversed(inner):
        blocks.append(StorageDim(ord(letter) - ord("a"), steps[letter], size))
        steps[letter] *= size
    outers = [StorageDim(ord(c) - ord("a"), steps[c], None) for c in outer.lower()]
    return (*outers, *reversed(blocks))


def _storage_extent(dim: StorageDim, size: Extent) -> Extent:
    if dim.extent is not None:
        return dim.extent
    return DYNAMIC if size == DYNAMIC else -(-size // dim.step)


def _storage_expr(dim: StorageDim, index: AffineExpr) -> AffineExpr:
    if dim.step != 1:
        index = index // dim.step
    return index if dim.extent is None else index % dim.extent
