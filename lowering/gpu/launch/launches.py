"""Describe how a kernel's entries are launched, without its IR: what crosses to other processes."""

from dataclasses import dataclass

THREADS = 256
"""The threads of a block where nothing asks for another number; a multiple of the 32 of a warp."""


MAP_BYTES = 128
"""The bytes of a tensor map."""

ENTRY_ALIGNMENT = 16
"""The alignment in bytes of buffers for usual entries: that of the widest access of a thread."""


@dataclass(frozen=True)
class TensorMap:
    """A description of how boxes of buffer `argument` are copied, for `cuTensorMapEncodeTiled`.

    `number` is the type of elements as PTX names it; extents, strides and the box are innermost
    first, strides in bytes without the first. Boxes lie in shared memory in lines of as many bytes
    as `swizzle` is: 128, 64 or 32. Elements out of bounds are read as 0 and not written. A buffer
    that does not begin at a multiple of 16 bytes has the map of one that begins at the multiple
    before: it is not used.
    """

    argument: int
    number: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 128


@dataclass(frozen=True)
class Launch:
    """One start of `entry`, a `gpu.func`, on this many blocks of this many threads.

    `arguments` are numbers of the kernel's buffers: its operands, its results, its scratch memory.
    Its blocks get `shared_bytes` of shared memory beyond what the entry declares: the external
    array `dynamic_shared(entry)`. After the buffers an entry takes `tensor_maps`, each as a value
    of 128 bytes. If one of them does not begin at a multiple of 16 bytes, `unaligned_entry` is
    started instead, if there is one.
    """

    entry: str
    blocks: int
    threads: int
    arguments: tuple[int, ...]
    shared_bytes: int = 0
    tensor_maps: tuple[TensorMap, ...] = ()
    unaligned_entry: str | None = None

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the entries that may be started."""
        return (self.entry,) if self.unaligned_entry is None else (self.entry, self.unaligned_entry)


@dataclass(frozen=True)
class Launches:
    """The launches of one call of the kernel `symbol`: each begins when the one before has ended.

    `buffer_bytes` is the size of each buffer, the first `operands` of them are only read and, with
    `has_scratch`, the last one is scratch memory.
    """

    symbol: str
    launches: tuple[Launch, ...]
    buffer_bytes: tuple[int, ...]
    operands: int
    has_scratch: bool = False

    def buffer_name(self, number: int) -> str:
        """Return the description of a buffer for people."""
        if number < self.operands:
            return f"operand {number}"
        if self.has_scratch and number == len(self.buffer_bytes) - 1:
            return "the scratch memory"
        return f"result {number - self.operands}"


NO_LAUNCHES = Launches("", (), (), 0)
"""The launches of a kernel that does nothing."""


def dynamic_shared(entry: str) -> str:
    """Return the symbol of the shared memory whose size the launch of an entry says."""
    return f"{entry}_shared"


def blocks_for(points: int, threads: int = THREADS) -> int:
    """Return the blocks that have a thread for each of this many points."""
    return -(-points // threads)
