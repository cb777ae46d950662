"""The code of fallback kernels: vector instructions, and no allocations."""

import platform

import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.reduction import ReduceOp
from braid.lowering.host.codegen.kernel_stages import emit

WIDE = TensorType(f32, (8, 1024))

vectorizes = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="looks for x86 instructions"
)


def assembly(kernel) -> str:
    text = emit(kernel, "asm")
    assert isinstance(text, str)
    return text


@vectorizes
@pytest.mark.parametrize(
    ("build", "instruction"),
    [
        (lambda x: [elementwise("add", x, x)], "addps"),
        (lambda x: [elementwise("mul", x, x), elementwise("sqrt", x)], "sqrtps"),
        (lambda x: [ReduceOp.get(x, "add", (1,))], "addps"),
        (lambda x: [ReduceOp.get(x, "add", (0,))], "addps"),
        (lambda x: [ReduceOp.get(x, "maximum", (1,))], "maxps"),
    ],
    ids=["add", "sqrt", "sum-of-rows", "sum-of-columns", "maximum-of-rows"],
)
def test_vector_instructions(check, build, instruction) -> None:
    assert instruction in assembly(check([WIDE], build))


def test_a_chain_needs_no_buffer(check) -> None:
    def build(x):
        y = elementwise("exp", x)
        return [y, elementwise("add", y, x)]

    kernel = check([WIDE], build)
    assert kernel.scratch_bytes == 0
    assert kernel.grid == 8


def test_padding_is_split(check) -> None:
    kernel = check([WIDE], lambda x: [PadOp.get(x, (1, 3), (0, 0), 2.0)])
    assert kernel.scratch_bytes == 0
    assert kernel.grid == 9


def test_what_two_ops_read_has_a_buffer(check) -> None:
    def build(x):
        y = elementwise("exp", x)
        total = ReduceOp.get(y, "add", (1,))
        return [y, total, elementwise("div", y, total)]

    kernel = check([WIDE], build)
    assert kernel.scratch_bytes >= 8 * 1024 * 4
    assert kernel.grid == 1


def test_no_calls_for_memory(check) -> None:
    text = assembly(
        check([WIDE], lambda x: [n := elementwise("neg", x), PadOp.get(n, (1, 1), (0, 0), 0)])
    )
    assert "malloc" not in text and "memrefCopy" not in text
