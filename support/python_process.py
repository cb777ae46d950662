"""How a process of this Python is started: nothing of the current directory is imported in it.

`python -m` and `python -c` put the current directory first on the search path, where a file
`struct.py` would take the place of Python's own, and an empty part of `PYTHONPATH` stands for the
current directory as well.
"""

import json
import os
import sys
from pathlib import Path

import braid

_START = Path(__file__).with_name("start_module.py")


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of braid as `python -m` does, of this same braid.

    Goes with `python_environment`. Packages that add to braid are found as in this process:
    through `PYTHONPATH`, the user's site, and the environment.
    """
    package = json.dumps([braid.__file__, *braid.__path__])
    return [sys.executable, *python_flags(), str(_START), package, module, *arguments]


def python_flags() -> list[str]:
    """Return the flags of a Python that is as isolated as this one, and has a safe search path."""
    ignores = ("-E",) if sys.flags.ignore_environment else ()
    return ["-P", *ignores, *(("-s",) if sys.flags.no_user_site else ())]


def python_environment() -> dict[str, str]:
    """Return the environment, without the parts of `PYTHONPATH` that are empty."""
    environment = dict(os.environ)
    places = environment.pop("PYTHONPATH", "").split(os.pathsep)
    if any(places):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    return environment
