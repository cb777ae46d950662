"""The toy package: an op, a pass, a kernel family, a target and an importer from outside."""

import shutil
import subprocess
from pathlib import Path

import pytest

TOY = Path(__file__).parents[2] / "docs" / "examples" / "toy"
MODULE = """
func.func @main(%x: tensor<2x8x40xf32> {braid.name = "x"})
    -> (tensor<2x8x40xf32> {braid.name = "y"}) {
  %y = toy.rms_norm %x {epsilon = 1.0e-5 : f64, braid.name = "y"}
      : (tensor<2x8x40xf32>) -> tensor<2x8x40xf32>
  func.return %y : tensor<2x8x40xf32>
}
"""
NODE = """
from onnx import helper, save
node = helper.make_node("RmsNorm", ["x"], ["y"], domain="toy", epsilon=0.5)
x, y = (helper.make_tensor_value_info(n, 1, [2, 4]) for n in "xy")
opsets = [helper.make_opsetid("", 18), helper.make_opsetid("toy", 1)]
graph = helper.make_graph([node], "g", [x], [y])
save(helper.make_model(graph, opset_imports=opsets, ir_version=9), "toy.onnx")
"""


def run(environment: dict[str, str], directory: Path, *command: str) -> tuple[int, str]:
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "norm.mlir").write_text(MODULE)
    return tmp_path


def test_the_family_makes_the_kernel_and_it_is_right(
    environment: dict[str, str], directory: Path
) -> None:
    status, output = run(environment, directory, "braid", "verify", "norm.mlir", "--jobs", "1")
    assert status == 0 and "all 1 ops agree with the interpreter" in output, output
    status, text = run(
        environment, directory, "braid", "compile", "norm.mlir", "--emit=linalg", "--jobs", "1"
    )
    assert status == 0 and "vector.fma" in text and "linalg.generic" not in text, text


def test_the_structure_alone_is_right_without_the_family(
    environment: dict[str, str], directory: Path
) -> None:
    command = ["braid", "verify", "norm.mlir", "--jobs", "1", "--no-families"]
    status, output = run(environment, directory, *command)
    assert status == 0 and "all 1 ops agree with the interpreter" in output, output
    program = """
import os
os.environ["BRAID_CACHE_DIR"] = os.path.abspath("of-the-wrong-structure")
import braid_toy.dialect as toy
from braid.tools.cli import main
toy.Literal = lambda value, type: toy.Apply("neg", (toy.Argument(0),), type)
raise SystemExit(main(["verify", "norm.mlir", "--jobs", "1", *OPTIONS]))
"""
    for options, expected in (([], 0), (["--no-families"], 1)):
        text = program.replace("OPTIONS", repr(options))
        status, output = run(environment, directory, "python", "-c", text)
        assert status == expected, output


def test_a_node_of_the_toy_domain_is_imported(environment: dict[str, str], directory: Path) -> None:
    assert run(environment, directory, "python", "-c", NODE)[0] == 0
    status, output = run(environment, directory, "braid", "verify", "toy.onnx", "--jobs", "1")
    assert "note: ONNX Runtime does not know toy:RmsNorm" in output, output
    assert status == 0 and "all 1 ops agree with the interpreter" in output, output
    status, output = run(environment, directory, "braid", "import", "toy.onnx")
    assert status == 0 and "toy.rms_norm" in output and "epsilon = 5.000000e-01" in output, output


@pytest.mark.parametrize(
    "command", [["python", "-m", "pytest", "-qp", "no:cacheprovider"], ["lit"]]
)
def test_the_tests_of_the_package_pass(environment: dict[str, str], command: list[str]) -> None:
    status, output = run(environment, TOY, *command, "tests")
    assert status == 0 and "ass" in output and "kipped" not in output, output


def test_a_wrong_op_is_a_diagnostic(environment: dict[str, str], directory: Path) -> None:
    (directory / "norm.mlir").write_text(MODULE.replace("1.0e-5", "-1.0"))
    status, output = run(environment, directory, "braid-opt", "norm.mlir")
    assert status == 1 and "epsilon is -1.0, expected no negative number" in output, output


def with_package(
    environment: dict[str, str], directory: Path, entry_points: str, **files: str
) -> dict[str, str]:
    """Return an environment with one more package that has these entry points and modules."""
    info = directory / "site" / "other-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entry_points)
    for name, text in files.items():
        (directory / "site" / f"{name}.py").write_text(text)
    return {**environment, "PYTHONPATH": f"{directory / 'site'}:{environment['PYTHONPATH']}"}


def test_a_broken_entry_point_is_named(environment: dict[str, str], directory: Path) -> None:
    entry_points = "[braid.kernel_families.cpu]\nlost = no_such:Family\n"
    broken = with_package(environment, directory, entry_points)
    status, output = run(broken, directory, "braid", "compile", "norm.mlir")
    assert status == 1 and "'lost' of 'braid.kernel_families.cpu' cannot be loaded" in output


def test_families_for_no_backend_are_warned_of(
    environment: dict[str, str], directory: Path
) -> None:
    entry_points = "[braid.kernel_families.cpx]\nlost = no_such:Family\n"
    misspelt = with_package(environment, directory, entry_points)
    status, output = run(misspelt, directory, "braid", "compile", "norm.mlir", "--jobs", "1")
    assert status == 0, output
    assert "warning: entry points of 'braid.kernel_families.cpx' are for no backend" in output


def test_a_package_adds_fusion_rules(environment: dict[str, str], directory: Path) -> None:
    rules = directory / "rules.toml"
    rules.write_text('[[rule]]\nproducers = ["toy.rms_norm"]\nconsumers = ["elementwise"]\n')
    after = "  %z = braid.neg %y : (tensor<2x8x40xf32>) -> tensor<2x8x40xf32>\n  func.return %z"
    (directory / "norm.mlir").write_text(MODULE.replace("  func.return %y", after))
    command = ("braid-opt", "norm.mlir", "-p", "select-fusion", "--remarks")
    status, output = run(environment, directory, *command)
    assert status == 0 and "2 ops in 2 groups" in output, output
    entry_points = "[braid.fusion_rules]\nother = other_rules:PATH\n"
    module = f"from pathlib import Path\nPATH = Path({str(rules)!r})\n"
    fusing = with_package(environment, directory, entry_points, other_rules=module)
    status, output = run(fusing, directory, *command)
    assert status == 0 and "2 ops in 1 groups" in output, output


def test_a_misspelt_attribute_is_refused(environment: dict[str, str], directory: Path) -> None:
    program = NODE.replace("epsilon=0.5", "epsilom=0.5")
    assert run(environment, directory, "python", "-c", program)[0] == 0
    status, output = run(environment, directory, "braid", "import", "toy.onnx")
    assert status == 1 and "nothing reads its attribute 'epsilom'" in output, output
    assert "hint: the importer asks for 'epsilon'" in output, output


def test_the_targets_of_packages_are_known(environment: dict[str, str], directory: Path) -> None:
    command = ("braid", "simulate", "norm.mlir", "--target")
    status, output = run(environment, directory, *command, "toy-board")
    assert status == 0 and "vector" in output, output
    status, output = run(environment, directory, *command, "none")
    assert status == 1 and "toy-board" in output, output


def test_a_family_of_another_version_compiles_its_kernels_anew(
    environment: dict[str, str], directory: Path
) -> None:
    command = ("braid", "verify", "norm.mlir", "--jobs", "1")
    assert run(environment, directory, *command)[0] == 0
    copy = directory / "copy" / "braid_toy"
    shutil.copytree(TOY / "braid_toy", copy)
    family = copy / "rms_norm_family.py"
    text = family.read_text(encoding="utf-8")
    wrong = text.replace("e.constant(1.0, root.type)", "e.constant(2.0, root.type)")
    wrong = wrong.replace("version: int = 1", "version: int = 2")
    assert wrong != text
    family.write_text(wrong, encoding="utf-8")
    changed = {**environment, "PYTHONPATH": f"{copy.parent}:{environment['PYTHONPATH']}"}
    status, output = run(changed, directory, *command)
    assert status == 1 and "first op that differs" in output, output
