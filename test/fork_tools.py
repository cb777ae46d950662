"""Starts the server of tools in forks, see `fork_server.py`: for lit, and for pages of docs."""

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_TOOLS = ("braid.tools.braid_opt", "braid.tools.cli", "filecheck.main")
_IMPORTED_BY_THEM = (
    "braid.compiler",
    "braid.lowering.common.convert_braid_to_linalg",
    "braid.tools.app",
    "braid.tools.opt.command",
    "fork_warmup",
)


def start_tools(path: Path, environment: Mapping[str, str]) -> str:
    """Start the server on socket `path`; returns the command that runs a module's tool by it.

    It ends with this process.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1024)
        server = [sys.executable, "test/fork_server.py", str(listener.fileno())]
        subprocess.Popen(
            [*server, *_TOOLS, "--", *_IMPORTED_BY_THEM],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            cwd=_ROOT,
            env=environment,
        )
    return f"{sys.executable} -I -S {_ROOT}/test/fork_client.py {path}"
