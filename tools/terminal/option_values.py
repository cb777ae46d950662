"""The values of options that are texts: sizes and numbers by name."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from braid.support.errors import BraidError
from braid.support.option_names import option_text

_END = 2**63 - 1
"""Sizes of dims are below it: it is the bound of a dim that may have any size."""


def split_pair(option: str, text: str, example: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Split `name=value` of an option at its last `=`, since names may hold one.

    `example` is what a message shows, by default a size.

    Raises:
        BraidError: there is no `=`, or nothing before it.

    """
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        shown = example or ({text: "8"} if text.isidentifier() else {"x": text or "8"})
        raise BraidError(
            f"{option_text(option)} is '{text}', expected NAME=VALUE",
            hint=f"such as {option_text(option, shown)}",
        )
    return name, value


def _given_twice(option: str, name: str) -> BraidError:
    return BraidError(
        f"{option_text(option)} is given twice for '{name}'", hint="leave one of them out"
    )


def _parse_size(option: str, name: str, text: str) -> int | None:
    """Return the size that `text` is, None if it is no number.

    Raises:
        BraidError: no tensor has such a large size.

    """
    if not (text.isascii() and text.isdecimal()):
        return None
    if len(text) > len(str(_END)) or int(text) >= _END:
        raise BraidError(
            f"{option_text(option)} for '{name}' is '{text:.30}', expected a size below {_END}"
        )
    return int(text)


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`.

    Raises:
        BraidError: one is not `name=d0,d1,…` with sizes of at least 0, or a name comes twice.

    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, dims = split_pair("shapes", text)
        if name in shapes:
            raise _given_twice("shapes", name)
        shapes[name] = _parse_list("shapes", name, dims, (1, 3, 224, 224)) if dims else ()
    return shapes


def parse_dims(texts: Sequence[str] | None) -> dict[str, int | str]:
    """Read the values of `--dim`: a size, or the name of another dim.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    dims: dict[str, int | str] = {}
    for text in texts or ():
        name, size = split_pair("dims", text)
        if name in dims:
            raise _given_twice("dims", name)
        number = _parse_size("dims", name, size)
        if number is None and size[:1] in tuple("+-.0123456789"):
            raise BraidError(
                f"{option_text('dims')} for '{name}' is '{size}', expected a size or a dim",
                hint=f"such as {option_text('dims', {name: 8})}",
            )
        dims[name] = size if number is None else number
    return dims


def parse_state(texts: Sequence[str] | None) -> dict[str, str]:
    """Read the values of `--state`: an input, and the output whose value it takes.

    Raises:
        BraidError: one is not `input=output`, or an input comes twice.

    """
    state: dict[str, str] = {}
    for text in texts or ():
        name, output = split_pair("state", text, {"past.*": "present.*"})
        if name in state:
            raise _given_twice("state", name)
        state[name] = output
    return state


def parse_specialize(texts: Sequence[str] | None) -> tuple[dict[str, int], ...]:
    """Read the values of `--specialize`, each of one or more dims separated by commas.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice in one.

    """
    found: list[dict[str, int]] = []
    for text in texts or ():
        sizes: dict[str, int] = {}
        for part in (part.strip() for part in text.split(",")):
            name, size = split_pair("specialize", part)
            if name in sizes:
                raise _given_twice("specialize", name)
            number = _parse_size("specialize", name, size)
            if number is None:
                raise BraidError(
                    f"{option_text('specialize')} for '{name}' is '{size}', expected a size",
                    hint=f"such as {option_text('specialize', {name: 8})}",
                )
            sizes[name] = number
        found.append(sizes)
    return tuple(found)


def parse_at(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--at`, each of one or more dims separated by commas.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    sizes: dict[str, int] = {}
    for text in (part.strip() for each in texts or () for part in each.split(",")):
        name, size = split_pair("at", text)
        if name in sizes:
            raise _given_twice("at", name)
        number = _parse_size("at", name, size)
        if number is None:
            raise BraidError(
                f"{option_text('at')} for '{name}' is '{size}', expected a size",
                hint=f"such as {option_text('at', {name: 8})}",
            )
        sizes[name] = number
    return sizes


def parse_buckets(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape-buckets`, each of one or more dims separated by `;`.

    Raises:
        BraidError: one is not `dim=size,size,…`, or a dim comes twice.

    """
    return _parse_sizes("shape_buckets", [p for t in texts or () for p in t.split(";")])


def parse_bounds(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--shape-bound`.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    bounds = _parse_sizes("shape_bounds", texts or ())
    for name, sizes in bounds.items():
        if len(sizes) != 1:
            raise BraidError(
                f"{option_text('shape_bounds')} for '{name}' has {len(sizes)} sizes, expected one",
                hint=f"several sizes are given with {option_text('shape_buckets')}",
            )
    return {name: sizes[0] for name, sizes in bounds.items()}


def _parse_sizes(option: str, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, sizes = split_pair(option, text.strip())
        if name in result:
            raise _given_twice(option, name)
        result[name] = _parse_list(option, name, sizes, (1, 2, 4))
    return result


def _parse_list(option: str, name: str, text: str, example: Sequence[int]) -> tuple[int, ...]:
    """Return sizes that commas separate.

    Raises:
        BraidError: one is no number, or too large.

    """
    sizes = [_parse_size(option, name, part.strip()) for part in text.split(",")]
    found = tuple(size for size in sizes if size is not None)
    if len(found) != len(sizes):
        raise BraidError(
            f"{option_text(option)} for '{name}' is '{text}', expected sizes separated by commas",
            hint=f"such as {option_text(option, {name: example})}",
        )
    return found


def parse_constants(
    texts: Sequence[str] | None, read_file: Callable[[Path], object] | None = None
) -> dict[str, object]:
    """Read the values of `--constant`: numbers, or lists of them as in JSON.

    `read_file` reads those that name a `.npy` file; what comes from other machines names none.

    Raises:
        BraidError: one is not `name=value`, or an input comes twice.

    """
    constants: dict[str, object] = {}
    for text in texts or ():
        name, value = split_pair("constants", text)
        if name in constants:
            raise _given_twice("constants", name)
        is_file = read_file is not None and value.lower().endswith(".npy")
        constants[name] = read_file(Path(value)) if read_file and is_file else _numbers(name, value)
    return constants


def _numbers(name: str, text: str) -> object:
    try:
        values: list[object] = json.loads(f"[{text}]")
    except (ValueError, RecursionError) as error:
        raise BraidError(
            f"{option_text('constants')} for '{name}' is '{text:.200}', expected numbers",
            hint=f"such as {option_text('constants', {name: 16000})}",
        ) from error
    return values[0] if len(values) == 1 else values
