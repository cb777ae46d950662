"""The ways in which LLVM lets flags be written, as the one that argparse reads.

`-cse`, `-mlir-timing` and `--mlir-timing=true` are `--cse` and `--mlir-timing`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from braid.support.errors import BraidError

_FLAG = re.compile(r"--?(?P<name>[a-z][\w-]+)(?:=(?P<value>.*))?", re.DOTALL)
_TRUTH = {
    **dict.fromkeys(("true", "TRUE", "True", "1", ""), True),
    **dict.fromkeys(("false", "FALSE", "False", "0"), False),
}


def plain_arguments(
    argv: Sequence[str],
    names: Collection[str],
    switches: Collection[str],
    if_bare: Mapping[str, str],
) -> Iterator[str]:
    """Write flags of these names with two dashes, and `switches` among them without a value.

    A switch that is false is left out, or becomes `--no-…` where that is one of `names`. Flags of
    `if_bare` get the value there if they are given without one.

    Raises:
        BraidError: a switch is given something else than true, false, 1 or 0.

    """
    for number, argument in enumerate(argv):
        if argument == "--":
            yield from argv[number:]
            return
        match = _FLAG.fullmatch(argument)
        if match is None or match["name"] not in names:
            yield argument
            continue
        name = match["name"]
        value = if_bare.get(name) if match["value"] is None else match["value"]
        if value is None or name not in switches:
            yield f"--{name}" if value is None else f"--{name}={value}"
        elif value not in _TRUTH:
            raise BraidError(f"--{name} takes true, false, 1 or 0, not '{value}'")
        elif _TRUTH[value]:
            yield f"--{name}"
        elif f"no-{name}" in names:
            yield f"--no-{name}"
