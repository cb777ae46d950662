"""The meaning of braid's attributes, from where their names are defined."""

import ast
import inspect
from functools import cache
from itertools import pairwise

from braid.dialects.braid import attribute_names


@cache
def attribute_docs() -> dict[str, str]:
    """Return what each attribute of the dialect means, by name."""
    body = ast.parse(inspect.getsource(attribute_names)).body
    found: dict[str, str] = {}
    for node, following in pairwise(body):
        match node, following:
            case (
                ast.Assign(targets=[ast.Name()], value=ast.Constant(value=str(name))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found
