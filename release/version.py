"""Say whether a tag is the version of the tree: `python release/version.py v0.3.0`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version() -> str:
    """Return the version of both distributions, which is in `braid/__init__.py`."""
    text = (ROOT / "braid" / "__init__.py").read_text()
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert match is not None, "braid/__init__.py says the version"
    return match[1]


def problem(tag: str) -> str | None:
    """Return why `tag` cannot be released, or None where it can."""
    if tag != f"v{version()}":
        return f"the tag is '{tag}', but braid/__init__.py says version {version()}"
    if not re.search(rf"^## {re.escape(version())}\b", (ROOT / "CHANGELOG.md").read_text(), re.M):
        return f"CHANGELOG.md has no section '## {version()}'"
    return None


if __name__ == "__main__":
    if message := problem(sys.argv[1]):
        sys.exit(f"release/version.py: {message}")
