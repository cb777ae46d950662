"""The IRDL of braid's dialect, loaded into upstream's bindings."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.dialects.printing import module_text
from braid.dialects.upstream_form import SEGMENTS, to_upstream_form
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.support.mlir_bindings import ir, library_file
from braid.tools.opt.files import split_chunks
from braid.universe import make_context

ROOT = Path(__file__).parents[3]
FILES = [
    file
    for file in sorted((ROOT / "test").rglob("*.mlir"))
    if not file.name.endswith(".irdl.mlir")  # upstream has other attributes for IRDL itself
]
OPT = library_file().parent / "torch-mlir-opt"
GROUPS = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x16xf32> {
  %y = "braid.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = "braid.exp"(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = "braid.slice"(%z) {offsets = array<i64: 0, 0>, sizes = array<i64: 4, 5>,
    strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x5xf32>
  %b = "braid.slice"(%x) {offsets = array<i64: 0, 0>, sizes = array<i64: 4, 3>,
    strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x3xf32>
  %c = "braid.matmul"(%z, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %d = "braid.concat"(%a, %c, %b) {dim = 1 : i64}
    : (tensor<4x5xf32>, tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<4x16xf32>
  func.return %d : tensor<4x16xf32>
}
"""
FOREIGN = ("llvm.", "memref.", "stablehlo.", "test.", "tosa.")
"""Dialects of which our ops differ from upstream's, or are checked less."""


def valid_modules(file: Path) -> list[ModuleOp]:
    """Return the parts of a test that are valid and made of ops that upstream knows, or braid's."""
    found: list[ModuleOp] = []
    for chunk in split_chunks(file.read_text(encoding="utf-8")):
        try:
            module = parse_mlir(make_context(), chunk.text, file.name).module
            verify_module(module)
        except (MLIRSyntaxError, InvalidIRError):
            continue
        if not any(op.name.startswith(FOREIGN) for op in module.walk()):
            found.append(module)
    return found


def braid_ops(module: ModuleOp) -> list[tuple[object, ...]]:
    """Return all that can be said about each of braid's ops except where its operands come from."""
    return [
        (op.name, op.attributes, op.properties, list(op.operand_types), list(op.result_types))
        for op in module.walk()
        if op.name.startswith("braid.")
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "test")))
def test_upstream_accepts_every_module(file: Path) -> None:
    for module in valid_modules(file):
        expected = braid_ops(module)
        to_upstream_form(module)
        with ir.Context() as context:
            braid.load_irdl(context)
            parsed = ir.Module.parse(module_text(module, generic=True))
            again = parsed.operation.get_asm(print_generic_op_form=True)
        read = parse_mlir(make_context(), again, "again.mlir").module
        verify_module(read)
        assert braid_ops(read) == expected


def test_irdl_binds_the_type_of_a_variadic() -> None:
    """Why ops of several types have a form of their own."""
    with ir.Context() as context:
        braid.load_irdl(context)
        with pytest.raises(ir.MLIRError, match="expected 'tensor<1xf32>' but got 'tensor<2xf32>'"):
            ir.Module.parse("""
            func.func @f(%x: tensor<1xf32>, %y: tensor<2xf32>) {
              %z = "braid.concat"(%x, %y) {dim = 0 : i64}
                : (tensor<1xf32>, tensor<2xf32>) -> tensor<3xf32>
              return
            }""")


def test_too_many_runs_of_types_are_refused() -> None:
    types = ", ".join(f"tensor<{1 + i % 2}xf32>" for i in range(SEGMENTS + 1))
    arguments = [f"%a{i}: tensor<{1 + i % 2}xf32>" for i in range(SEGMENTS + 1)]
    names = ", ".join(f"%a{i}" for i in range(SEGMENTS + 1))
    module = parse_mlir(
        make_context(),
        f"""func.func @f({", ".join(arguments)}) {{
          %z = braid.opaque "op"({names}) : ({types}) -> tensor<1xf32>
          func.return
        }}""",
        "many.mlir",
    ).module
    with pytest.raises(braid.BraidError, match="change their type 64 times"):
        to_upstream_form(module)


@pytest.mark.skipif(not OPT.exists(), reason="the bindings come without their mlir-opt")
def test_mlir_opt_carries_groups_of_several_types(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(GROUPS)
    braid_opt = [sys.executable, "-m", "braid.tools.braid_opt"]
    run = partial(subprocess.run, check=True, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    run([*braid_opt, "--emit=irdl", "-o", tmp_path / "braid.irdl.mlir"])
    passes = "canonicalize,cse,select-fusion,apply-fusion,select-layouts,apply-layouts"
    text = run([*braid_opt, tmp_path / "model.mlir", "-p", passes, "--emit=upstream"]).stdout
    assert "braid.mixed_fused" in text
    assert "braid.mixed_concat" in text
    carried = run([OPT, f"--irdl-file={tmp_path / 'braid.irdl.mlir'}", "-cse"], input=text).stdout
    again = run([*braid_opt, "-p", "search-order,apply-order,outline-kernels"], input=carried)
    assert "braid.concat" in again.stdout
    assert "mixed" not in again.stdout
    assert "tosa" not in again.stdout


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"braid.exp"(%x) : (tensor<4xf32>) -> i32', "expected base type 'builtin.tensor'"),
        ('"braid.exp"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', "1 operand"),
        ('"braid.parameter"() : () -> tensor<4xf32>', 'attribute "key" is expected'),
        ('"braid.parameter"() {key = 1} : () -> tensor<4xf32>', "base attribute 'builtin.string'"),
        ('"braid.no_such_op"() : () -> tensor<4xf32>', "does not allow unknown operations"),
        ('"braid.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32, #braid.layout<1>>', "base attribute"),
    ],
)
def test_upstream_checks_what_irdl_can_say(op: str, message: str) -> None:
    with ir.Context() as context:
        braid.load_irdl(context)
        with pytest.raises(ir.MLIRError, match=message):
            ir.Module.parse(f"func.func @f(%x: tensor<4xf32>) {{ %y = {op} return }}")


def test_passes_run_where_the_dialect_is_loaded() -> None:
    with ir.Context() as context:
        for _ in range(2):
            braid.load_irdl(context)
        module = ir.Module.parse("""
        func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
          %y = "braid.transpose"(%x) {permutation = array<i64: 1, 0>}
            : (tensor<4x4xf32>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %z = "braid.exp"(%y)
            : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %a = "braid.exp"(%y)
            : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %s = "braid.add"(%z, %a) {braid.name = "s"}
            : (tensor<4x4xf32, #braid.layout<"ba">>, tensor<4x4xf32, #braid.layout<"ba">>)
              -> tensor<4x4xf32>
          return %s : tensor<4x4xf32>
        }
        """)
        braid.run_passes(module, "cse,select-fusion,apply-fusion")
        assert str(module).count("braid.exp") == 1
        assert "braid.fused" in str(module)


def test_groups_of_several_types_stay_checked_between_passes() -> None:
    groups = parse_mlir(make_context(), GROUPS, "groups.mlir").module
    to_upstream_form(groups)
    with ir.Context() as context:
        braid.load_irdl(context)
        module = ir.Module.parse(module_text(groups, generic=True))
        braid.run_passes(module, "select-fusion,apply-fusion")
        assert "braid.mixed_fused" in str(module)
        braid.run_passes(module, "select-layouts,apply-layouts,outline-kernels")
        assert "fused" not in str(module)


def test_only_contexts_are_accepted() -> None:
    with pytest.raises(braid.BraidError, match="cannot load IRDL into a list"):
        braid.load_irdl([])
