"""What classes of ops and passes say of themselves."""

import inspect


def summary_of(documented: type) -> str:
    """Return the first paragraph of a class's docstring, "" where it has none of its own."""
    text = inspect.cleandoc(documented.__dict__.get("__doc__") or "")
    # A dataclass without a docstring gets its signature as one, which says nothing new.
    if text.startswith(f"{documented.__name__}("):
        return ""
    return text.partition("\n\n")[0].replace("\n", " ")
