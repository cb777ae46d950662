"""Where users open a page of the documentation that a message names.

The pages about extending braid are a part of the package, by the link `pages` beside this module:
there is no public address of them, and a path in the repository says nothing to users of a wheel.
"""

import os
from pathlib import Path

_PAGES = Path(os.path.realpath(__file__)).parent / "pages"


def page(name: str) -> str:
    """Return the path of a page, such as `import-an-op.md`, in the installation that runs."""
    return os.path.realpath(_PAGES / name)
