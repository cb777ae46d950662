"""What `--help` and `--show-dialects` list."""

import inspect

from xdsl.passes import ModulePass

from braid.passes.infrastructure.options import pass_options
from braid.passes.infrastructure.registry import PassFactory, available_passes, pass_table
from braid.passes.pipelines import PIPELINES
from braid.support.errors import BraidError
from braid.universe import DIALECTS, make_context

_COLUMN = 28
"""Where the texts begin."""


def list_passes() -> str:
    """All passes with their options, types, defaults and the first line of their documentation.

    braid's own come first, then the named pipelines, then the passes of other packages.
    """
    passes = available_passes()
    own = [_describe(name, passes[name]) for name in sorted(pass_table())]
    others = [_describe(name, passes[name]) for name in sorted(passes) if name not in pass_table()]
    pipelines = [_entry(name, ",".join(parts)) for name, parts in sorted(PIPELINES.items())]
    sections = {
        "passes of braid:": own,
        "named pipelines:": pipelines,
        "passes of xDSL and installed packages:": others,
    }
    return "\n\n".join("\n".join([title, *lines]) for title, lines in sections.items())


def list_dialects() -> str:
    """The names of all dialects, one a line; braid's own first."""
    names = make_context().registered_dialect_names
    return "\n".join([*DIALECTS, *sorted(set(names) - set(DIALECTS))])


def _describe(name: str, factory: PassFactory) -> str:
    try:
        pass_class = factory()
        options = pass_options(pass_class)
    except (ImportError, NameError, BraidError) as error:
        return _entry(name, f"(cannot be loaded: {error})")
    lines = [_entry(name, _first_line(pass_class))]
    return "\n".join([*lines, *(f"      {option}" for option in options)])


def _entry(name: str, text: str) -> str:
    """A name and what it means, in columns; below each other where the name is too long."""
    if len(name) < _COLUMN or not text:
        return f"  {name:<{_COLUMN}}{text}".rstrip()
    return f"  {name}\n  {'':<{_COLUMN}}{text}"


def _first_line(pass_class: type[ModulePass]) -> str:
    documentation = inspect.cleandoc(pass_class.__doc__ or "")
    # A dataclass without a docstring gets its signature as one, which says nothing new.
    if documentation.startswith(f"{pass_class.__name__}("):
        return ""
    return documentation.partition("\n")[0]
