import pytest

from braid.lowering.host.codegen.llvm_text import (
    bfloat_as_integers,
    only_moves_vectors,
    translate_literals,
)
from braid.support.llvm_bindings import llvm


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("fadd float %a, 0.1", "fadd float %a, 0x3FB99999A0000000"),
        ("fadd float %a, f0x3F800000", "fadd float %a, 0x3FF0000000000000"),
        ("fadd double %a, 0.1", "fadd double %a, 0x3FB999999999999A"),
        ("fadd double %a, f0x7FF0000000000000", "fadd double %a, 0x7FF0000000000000"),
        ("fadd half %a, 1.0", "fadd half %a, 0xH3C00"),
        ("fadd bfloat %a, f0x3F80", "fadd bfloat %a, 0xR3F80"),
        ("fadd float %a, -inf", "fadd float %a, 0xFFF0000000000000"),
        ("fadd float %a, +qnan", "fadd float %a, 0x7FF8000000000000"),
        ("fadd float %a, 1.5e-05", "fadd float %a, 0x3EEF751040000000"),
        (
            "store <2 x float> splat (float 0.5), ptr %p",
            "store <2 x float> splat (float 0x3FE0000000000000), ptr %p",
        ),
        (
            "select i1 %c, double 2.0, double %x",
            "select i1 %c, double 0x4000000000000000, double %x",
        ),
    ],
)
def test_literals(new: str, old: str) -> None:
    assert translate_literals(new) == old


@pytest.mark.parametrize(
    "line",
    [
        "%float.1 = add i32 %half, 1",
        'source_filename = "float 1.0"',
        "define float @f(float %x1.5, float %inf)",
        "; float",
        "br label %bb1.0",
    ],
)
def test_what_is_no_literal_stays(line: str) -> None:
    assert translate_literals(line) == line


def test_the_reader_takes_every_value() -> None:
    values = ["0.1", "f0x7F7FFFFF", "+inf", "-inf", "+qnan", "3.4028234e+38", "1.0e-45"]
    adds = "\n".join(f"%a{i} = fadd float %x, {value}" for i, value in enumerate(values))
    module = f"define void @f(float %x) {{\n{adds}\nret void\n}}"
    llvm.parse_assembly(translate_literals(module)).verify()


MOVED = """define void @f(ptr %p, i1 %c, <4 x i1> %k) {
  %x = load <4 x bfloat>, ptr %p, align 2
  %m = call <4 x bfloat> @llvm.masked.load.v4bf16.p0(ptr %p, i32 2, <4 x i1> %k, <4 x bfloat> %x)
  %y = shufflevector <4 x bfloat> %m, <4 x bfloat> poison, <2 x i32> <i32 1, i32 3>
  %z = select i1 %c, <2 x bfloat> %y, <2 x bfloat> splat (bfloat 0xR3F80)
  store <2 x bfloat> %z, ptr %p, align 2
  ret void
}
declare <4 x bfloat> @llvm.masked.load.v4bf16.p0(ptr, i32, <4 x i1>, <4 x bfloat>)
"""


def test_bfloat_that_is_moved_is_an_integer() -> None:
    text = bfloat_as_integers(MOVED)
    assert "bf" not in text and "splat (i16 16256)" in text
    llvm.parse_assembly(text).verify()


def test_instructions_keep_their_names() -> None:
    line = "  call void @llvm.x86.tdpbf16ps(i8 0, i8 1, i8 2)"
    declared = "declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)\n"
    text = bfloat_as_integers(MOVED.replace("  ret void", f"{line}\n  ret void") + declared)
    assert line in text and "bfloat" not in text
    llvm.parse_assembly(text).verify()


@pytest.mark.parametrize(
    "line",
    [
        "%a = fneg bfloat %x",
        "%a = select nnan i1 %c, bfloat %x, bfloat %y",
        "call void @g(bfloat %x)",
    ],
)
def test_bfloat_that_is_computed_with_stays(line: str) -> None:
    text = MOVED.replace("  ret void", f"  {line}\n  ret void")
    assert bfloat_as_integers(text) == text


@pytest.mark.parametrize(
    ("lines", "moves"),
    [
        (["store <16 x float> zeroinitializer, ptr %p, align 4"], True),
        (["%x = load <4 x i8>, ptr %p", "store <4 x i8> %x, ptr %q"], True),
        (["%x = load <4 x float>, ptr %p", "%y = fadd <4 x float> %x, %x"], False),
        (["%x = load <4 x i32>, ptr %p", "%y = mul <4 x i32> %x, %x"], False),
        (["store <4 x float> zeroinitializer, ptr %p", "call void @f(ptr %p)"], False),
        (["store <4 x float> zeroinitializer, ptr %p", "%y = fmul float %x, %x"], False),
        (["%x = load float, ptr %p", "store float %x, ptr %q"], False),
        (["%a = add i64 %i, 16", "store <4 x float> zeroinitializer, ptr %p"], True),
    ],
)
def test_what_only_moves_vectors(lines: list[str], moves: bool) -> None:
    assert only_moves_vectors("\n".join(lines)) is moves
