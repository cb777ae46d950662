"""Command lines of Python processes that import nothing from the current directory.

`python -m` and `python -c` put the current directory first on the search path, where a file
`struct.py` would replace Python's own module. An empty entry of `PYTHONPATH` also means the current
directory.
"""

import json
import os
import sys
from pathlib import Path

import braid

_START = Path(__file__).with_name("start_module.py")


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this installation of braid like `python -m`.

    It is to be run with `python_environment()`. Packages that extend braid are found as in this
    process: through `PYTHONPATH`, the user's site directory, and the virtual environment.
    """
    package = json.dumps([braid.__file__, *braid.__path__])
    return [sys.executable, *python_flags(), str(_START), package, module, *arguments]


def python_flags() -> list[str]:
    """Return the flags of a Python as isolated as this one, with a safe search path."""
    ignores = ("-E",) if sys.flags.ignore_environment else ()
    return ["-P", *ignores, *(("-s",) if sys.flags.no_user_site else ())]


def python_environment() -> dict[str, str]:
    """Return the environment variables, without empty entries of `PYTHONPATH`."""
    environment = dict(os.environ)
    places = environment.pop("PYTHONPATH", "").split(os.pathsep)
    if any(places):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    return environment
