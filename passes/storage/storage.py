"""A buffer of a program before placement, and the bytes of tensors in it."""

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.tensor_storage import open_storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.sizes import extents_of_type
from braid.passes.storage.memory_spaces import MAIN
from braid.support.errors import UnsupportedError
from braid.support.option_names import option_text
from braid.support.sizes.expression import Extent

AnyTensor = TensorType[Attribute]


@dataclass(eq=False)
class Storage:
    """One buffer: live from `lower` to `upper` (numbers of ops, both included).

    It must be aligned to `element_bytes` at least. `memory` is the memory of the target that it is
    in; `place` is set where it is not in the arena of that. If ops run concurrently, the order of
    their numbers is only one of many, and `moments` list what is live together.

    `within` is a buffer that is written while this one is read for the last time; if both are in
    one memory, this one is where that one begins.
    """

    size: Extent
    lower: int
    upper: int
    element_bytes: int
    memory: str = MAIN
    place: BufferAttr | None = None
    moments: tuple[tuple[int, int], ...] = ()
    within: "Storage | None" = None

    @property
    def bytes(self) -> int:
        """Return the size of a storage whose size is a number."""
        assert isinstance(self.size, int), "places are numbers where sizes are"
        return self.size

    @property
    def lifetimes(self) -> tuple[tuple[int, int], ...]:
        """The intervals `[begin, end)` in which it is live."""
        return self.moments or ((self.lower, self.upper + 1),)

    @property
    def lifetimes_apart(self) -> tuple[tuple[int, int], ...]:
        """The intervals in which it takes bytes that are not counted as those of `within`."""
        if self.within is None or self.within.place is not None:
            return self.lifetimes
        return ((self.lower, self.upper),)


def tensor_bytes(tensor: Attribute, op: Operation) -> Extent:
    """Return the bytes that a tensor of this type takes in its layout, a size for open dims.

    Raises UnsupportedError for open dims that have no size, and for abstract layouts.
    """
    if (layout := layout_of(tensor)).is_abstract:
        raise UnsupportedError(
            f"'{op.name}' has a tensor in the abstract layout '{layout.tag}'; memory cannot be "
            "planned",
            location=source_location(op),
            hint="declare layouts that say how a tensor is stored, such as 'NHWC' or 'aBcd16b'",
        )
    if DYNAMIC in extents_of_type(cast(AnyTensor, tensor)):
        raise UnsupportedError(
            f"'{op.name}' has an open dim in {tensor}; memory cannot be planned",
            location=source_location(op),
            hint="give the shapes of the inputs: in the types of a module, or of an ONNX model "
            f"by {option_text('shapes', {'name': (1, 3, 224, 224)})}",
        )
    return open_storage_bytes(tensor)


def element_bytes(tensor: Attribute) -> int:
    """Return the bytes of one element of a tensor type."""
    return bytes_of(cast(AnyTensor, tensor).element_type)
