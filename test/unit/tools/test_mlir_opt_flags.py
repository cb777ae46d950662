"""Every flag of a real mlir-opt is one that `braid-opt` takes, or refuses with a reason."""

import re
import subprocess

import pytest

from braid.support.mlir_bindings import library_file
from braid.tools.opt.arguments import parse_arguments
from braid.tools.opt.flags import build_parser, names_of_flags
from braid.tools.opt.refused import REFUSED

_FLAG = re.compile(r"^  --?([a-z][\w-]+)", re.MULTILINE)
_OF_LLVM = {
    *("color", "disable-i2p-p2i-opt", "elide-all-zero-branch-weights", "generate-merged-base"),
    *("no-warn-sample-unused", "object-size-offset-visitor-max-visit-instructions"),
}
"""What LLVM's libraries add to every tool, which concerns LLVM IR or the terminal."""


def flags_of_mlir_opt() -> set[str]:
    """Return the names of the flags of the mlir-opt beside the bindings, without passes."""
    tools = sorted(library_file().parent.glob("*mlir-opt"))
    if not tools:
        pytest.skip("needs bindings of MLIR that bring an mlir-opt")
    help_text = subprocess.run([tools[0], "--help"], capture_output=True, text=True, check=True)
    general, passes, rest = help_text.stdout.partition("Compiler passes to run")
    assert passes, "the help of mlir-opt lists passes"
    # What comes behind the passes is less indented than they are.
    return set(_FLAG.findall(general)) | {
        name for name in _FLAG.findall(rest) if name.startswith(("verify", "split", "remark"))
    }


def test_no_flag_is_unknown() -> None:
    flags = flags_of_mlir_opt()
    assert {"mlir-timing", "verify-roundtrip", "irdl-file", "dump-pass-pipeline"} <= flags
    known = names_of_flags(build_parser()) | REFUSED.keys()
    assert not {flag for flag in flags - known if not flag.startswith("x86")} - _OF_LLVM


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refusal_says_why(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments([f"-{name}=x"])
    assert ended.value.code == 1
    message = capsys.readouterr().err
    assert message.startswith(f"braid-opt: error: --{name} is refused: ")
    assert len(message.split()) > 10


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["-mlir-print-op-generic"], "print_format.generic", True),
        (["--mlir-print-op-generic=false"], "print_format.generic", False),
        (["-verify-each=0"], "verify_each", False),
        (["-mlir-print-assume-verified", "-debug-only=a,b"], "debug_only", 2),
        (["-split-input-file", "a.mlir"], "split_marker", "// -----"),
        (["-split-input-file=//-", "a.mlir"], "split_marker", "//-"),
        (["-verify-diagnostics", "a.mlir"], "verify_diagnostics", "all"),
        (["-mlir-print-ir-after=cse,canonicalize", "-mlir-print-ir-after=cse"], "print_after", 3),
        (["-cse", "-canonicalize", "a.mlir"], "pipeline", "cse,canonicalize"),
        (["-o", "b.mlir", "--", "a.mlir"], "input_file", "a.mlir"),
        (["-mlir-elide-elementsattrs-if-larger", "-1"], "print_format.most_elements", None),
    ],
)
def test_spellings(arguments: list[str], name: str, value: object) -> None:
    found: object = parse_arguments(arguments)
    for part in name.split("."):
        found = getattr(found, part)
    assert (len(found) if isinstance(found, tuple) else found) == value
