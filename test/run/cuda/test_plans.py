"""Plans that are damaged are refused, whatever stands in them."""

import re
import subprocess
from pathlib import Path

import braid
from braid.frontends.mlir import parse_mlir
from braid.runtime.artifact import read_artifact
from braid.universe import make_context
from test.c_programs import build
from test.run.cuda.conftest import TARGET
from test.run.cuda.test_failures import MODEL

NATIVE = Path(braid.__file__).parent / "runtime" / "native" / "src"


def test_damaged_plans(tmp_path: Path) -> None:
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    braid.compile(module, target=TARGET, load=False).save(tmp_path / "m.braid")
    artifact = read_artifact(tmp_path / "m.braid")
    kinds = [code.kind for code in artifact.manifest.devices]
    plan = tmp_path / "plan"
    plan.write_bytes(artifact.device_code[kinds.index("gpu-plan-sm_80")].tobytes())
    source = Path(__file__).with_name("read_plans.c")
    checked = ("-fsanitize=address,undefined", f"-I{NATIVE / 'cuda'}")
    sources = (source, NATIVE / "cuda" / "plan.c", NATIVE / "plan_reader.c")
    program = build(tmp_path / "read_plans", *sources, flags=checked)
    result = subprocess.run([program, plan], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    *messages, counts = result.stdout.splitlines()
    found = re.fullmatch(r"(\d+) taken, (\d+) refused", counts)
    # A plan with another number of blocks or another letter in a name is a different plan.
    assert found is not None and int(found[2]) > int(found[1])
    assert all(m.startswith("the plan of its functions is malformed: ") for m in messages)
    assert len(set(messages)) > 8
