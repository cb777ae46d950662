"""The documentation of classes of ops and passes."""

import inspect


def summary_of(documented: type) -> str:
    """Return the first paragraph of a class's docstring, "" if it has no docstring of its own."""
    text = inspect.cleandoc(documented.__dict__.get("__doc__") or "")
    # A dataclass without a docstring gets its signature as one, which adds nothing.
    if text.startswith(f"{documented.__name__}("):
        return ""
    return text.partition("\n\n")[0].replace("\n", " ")
