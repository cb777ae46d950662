"""The instructions of PTX for sm_90a that LLVM's intrinsics do not have, one a function.

Syntax and semantics: PTX ISA, "mbarrier", "cp.async.bulk.tensor", "wgmma.mma_async".
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import ElementKind

WARPGROUP = 128
"""Threads that multiply together."""
BLOCK_ROWS = 64
"""Rows of A that they multiply at once."""
STEP_BYTES = 32
"""The bytes of a row of A that one instruction multiplies."""


def initialize(code: Code, barrier: Value, arrivals: int) -> None:
    """Initialize an mbarrier whose phases end after `arrivals` arrivals."""
    code.assembly("mbarrier.init.shared::cta.b64 [$0], $1;", [barrier, code.number(arrivals)])


def publish_barriers(code: Code) -> None:
    """Make initialized barriers visible, to copies of tensors too."""
    code.assembly("fence.mbarrier_init.release.cluster;")


def arrive(code: Code, barrier: Value) -> None:
    """Arrive once at an mbarrier."""
    code.assembly("mbarrier.arrive.shared::cta.b64 _, [$0];", [barrier])


def expect(code: Code, barrier: Value, bytes: int) -> None:
    """Arrive once, and make the phase wait for `bytes` bytes of copies."""
    text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
    code.assembly(text, [barrier, code.number(bytes)])


def wait(code: Code, barrier: Value, parity: Value) -> None:
    """Wait until the phase of this parity has ended."""
    instruction = "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1"
    text = f"{{ .reg .pred p; again: {instruction}; @!p bra again; }}"
    code.assembly(text, [barrier, parity])


def load_box(code: Code, target: Value, map: Value, at: Sequence[Value], barrier: Value) -> None:
    """Copy the box at these indices, innermost first, to shared memory."""
    indices = ", ".join(f"${n + 2}" for n in range(len(at)))
    code.assembly(
        f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[$0], [$1, {{{indices}}}], [${len(at) + 2}];",
        [target, map, *at, barrier],
    )


def store_box(code: Code, map: Value, at: Sequence[Value], source: Value) -> None:
    """Copy a box from shared memory to these indices, as a group of copies of its own."""
    indices = ", ".join(f"${n + 1}" for n in range(len(at)))
    code.assembly(
        f"cp.async.bulk.tensor.{len(at)}d.global.shared::cta.tile.bulk_group "
        f"[$0, {{{indices}}}], [${len(at) + 1}];",
        [map, *at, source],
    )
    code.assembly("cp.async.bulk.commit_group;")


def wait_for_stores(code: Code, left: int) -> None:
    """Wait until all but `left` groups of stores of the thread have read shared memory."""
    code.assembly(f"cp.async.bulk.wait_group.read {left};")


def publish_to_copies(code: Code) -> None:
    """Make the thread's writes to shared memory visible to copies of tensors."""
    code.assembly("fence.proxy.async.shared::cta;")


def set_registers(code: Code, count: int, more: bool) -> None:
    """Set how many registers threads of the warpgroup have from now on."""
    code.assembly(f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32 {count};")


def prefetch_map(code: Code, map: Value) -> None:
    """Read a tensor map ahead."""
    code.assembly("prefetch.tensormap [$0];", [map])


def begin_products(code: Code) -> None:
    """Wait until writes to the registers of sums are visible to `wgmma`."""
    code.assembly("wgmma.fence.sync.aligned;")


def end_products(code: Code) -> None:
    """Commit the products so far as one group."""
    code.assembly("wgmma.commit_group.sync.aligned;")


def wait_for_products(code: Code, left: int, sums: Sequence[Value]) -> list[Value]:
    """Return the sums, after a wait until all but this many groups have ended."""
    text = f"wgmma.wait_group.sync.aligned {left};"
    return code.assembly(text, [], [value.type for value in sums], sums)


def multiply(
    code: Code,
    sums: Sequence[Value],
    a: Value | Sequence[Value],
    b: Value,
    numbers: tuple[ElementKind, ElementKind],
    b_by_rows: bool,
    adds: bool = True,
) -> list[Value]:
    """Start adding the product of two matrices to sums, which are ready after a wait.

    The right one is given by its descriptor, the left one by its descriptor or its fragment:
    registers of 16-bit pairs, arranged as the sums of a product (PTX ISA, "Matrix Fragments for
    wgmma"). Rows of A along K, and rows of B along K too unless `b_by_rows`: then rows of columns.
    Unless it `adds`, the previous sums are ignored.
    """
    count = len(sums)
    depth = STEP_BYTES // {ElementKind.S8: 1, ElementKind.U8: 1}.get(numbers[0], 2)
    total = "s32" if sums[0].type == i32 else "f32"
    types = ".".join([total, *(number.value for number in numbers)])
    registers = ", ".join(f"${n}" for n in range(count))
    opcode = f"wgmma.mma_async.sync.aligned.m{BLOCK_ROWS}n{2 * count}k{depth}.{types}"
    if isinstance(a, SSAValue):
        given, left, turns = [a, b], f"${count}", f", 0, {int(b_by_rows)}"
    else:
        given, turns = [*a, b], f", {int(b_by_rows)}"
        left = f"{{{', '.join(f'${count + n}' for n in range(len(a)))}}}"
    flags = "" if total == "s32" else f", 1, 1{turns}"
    operands = f"{{{registers}}}, {left}, ${count + len(given) - 1}, p{flags}"
    text = f"{{ .reg .pred p; setp.ne.b32 p, {int(adds)}, 0; {opcode} {operands}; }}"
    return code.assembly(text, given, [value.type for value in sums], sums if adds else ())
