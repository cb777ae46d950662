"""Find where users open a page of the documentation that a message names.

Wheels hold the pages about extending braid next to this module: they have no public address, and a
path in the repository does not help users of a wheel.
"""

import os
from pathlib import Path

_HERE = Path(os.path.realpath(__file__)).parent
_INSTALLED, _IN_CHECKOUT = _HERE / "pages", _HERE.parent / "docs" / "extending"


def page(name: str) -> str:
    """Return the path of a page, such as `import-an-op.md`, in the installation that runs."""
    return str((_INSTALLED if _INSTALLED.is_dir() else _IN_CHECKOUT) / name)
