"""What emitters of CPU kernels leave: few ops, memory at once, and loops that LLVM leaves alone."""

import gc
import weakref

import pytest
from xdsl.dialects.builtin import IndexType, TensorType, f32
from xdsl.ir import Block

from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.common.discard import discard
from braid.lowering.common.function_attributes import UNROLLED
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.emitter import Emitter, Index
from braid.lowering.host.codegen.objects import optimize
from braid.targets.kernels.kernel_family import Kernel
from test.machines import AVX512
from test.run.kernels.conftest import candidate_of, make_group


def product() -> Kernel:
    def build(a, b):
        op = MatmulOp.on(a, b)
        return [op], [op.output]

    types = [TensorType(f32, shape) for shape in ((30, 40), (40, 50))]
    candidate = candidate_of(GemmFamily(AVX512), make_group(types, build))
    return candidate.emit("product", next(candidate.space(0)))


def test_indices_are_computed_once_in_a_block_and_those_inside() -> None:
    entry = Block(arg_types=[IndexType()] * 4)
    e = Emitter(entry, VectorUnit.of(AVX512))
    a, b, *_ = entry.args
    outside = e.add(a, b)
    inner: list[Index] = []

    def body(index: Index) -> None:
        inner.extend([e.add(a, b), e.mul(a, b), e.mul(a, b)])

    e.loop(0, 8, 1, body)
    assert inner[0] is outside
    assert inner[1] is inner[2]
    assert e.mul(a, b) is not inner[1], "it is known inside of the loop alone"


def test_modules_that_are_discarded_leave_nothing_to_search_for() -> None:
    kernel = product()
    loops = [weakref.ref(op) for op in kernel.module.walk() if op.name == "scf.for"]
    assert loops
    gc.disable()
    try:
        discard(kernel.module)
        del kernel
        assert [loop() for loop in loops] == [None] * len(loops)
    finally:
        gc.enable()


@pytest.mark.parametrize("attributes", ["", f' "{UNROLLED}"'])
def test_loops_of_kernels_that_are_unrolled_stay(attributes: str) -> None:
    text = f"""
        define void @f(ptr %x) {attributes} {{
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %at = getelementptr <16 x float>, ptr %x, i64 %i
          %value = load <16 x float>, ptr %at
          %sum = fadd <16 x float> %value, %value
          store <16 x float> %sum, ptr %at
          %next = add i64 %i, 1
          %ends = icmp eq i64 %next, 4
          br i1 %ends, label %end, label %loop
        end:
          ret void
        }}"""
    assert optimize(text, AVX512).count("fadd") == (1 if attributes else 4)


def test_products_are_unrolled_by_their_emitters() -> None:
    assert UNROLLED in str(product().module)
