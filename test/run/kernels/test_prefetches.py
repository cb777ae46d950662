"""The data that tiles of matmuls prefetch."""

import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.lowering.cpu.kernels.contraction import microkernel
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from test.machines import AVX512
from test.run.kernels.conftest import candidate_of, make_group

FAMILY = ConvDirectFamily(AVX512)


def pointwise(stride: int):
    """Build a window of one element, with a second addend if one is given."""

    def build(x, w, *addends):
        ops = [
            ConvOp.get(
                x, w, strides=[stride, stride], dilations=[1, 1], pad_low=[0, 0], pad_high=[0, 0]
            )
        ]
        ops += [elementwise("add", ops[0].output, addend) for addend in addends]
        return ops, [ops[-1].results[0]]

    return build


def prefetches(size: int, outputs: int, stride: int = 1, *, addend: bool = False) -> int:
    """Return the prefetches in the code of a kernel: of weights, of rows and of addends."""
    out = size // stride
    shapes = [(1, 64, size, size), (outputs, 64, 1, 1), (1, outputs, out, out)][: 2 + addend]
    build = pointwise(stride)
    types = [TensorType(f32, shape) for shape in shapes]
    choice = candidate_of(FAMILY, make_group(types, build)).layouts[0]
    candidate = candidate_of(FAMILY, make_group(types, build, choice))
    kernel = candidate.emit("kernel", next(candidate.space(0)))
    return str(kernel.module).count("memref.prefetch")


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microkernel, "_prefetch", lambda *_: None)


@pytest.mark.usefixtures("no_weights")
def test_rows_of_the_next_tile() -> None:
    """Where they follow each other in memory, and are not read again for other columns."""
    assert prefetches(56, 64) > 0
    assert prefetches(56, 64, 2) == 0, "every other row is left out"
    assert prefetches(2, 64) == 0, "all rows are one tile"
    assert prefetches(16, 4096) == 0, "columns are read for all rows"


@pytest.mark.usefixtures("no_weights")
def test_pieces_of_rows_that_are_added() -> None:
    """Indices of a whole row are already in memory order, and need no instruction."""
    assert prefetches(56, 256, 2, addend=True) >= 14 * 2
    assert prefetches(56, 32, 2, addend=True) == 0
