import pytest

from braid.lowering.host.codegen.llvm_text import translate_literals
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
