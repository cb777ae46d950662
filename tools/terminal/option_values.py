"""The values of options that are texts: sizes and numbers by name."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def _pairs(
    option: str, texts: Iterable[str], example: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the names and values of an option, each split as `split_pair` does.

    Raises:
        BraidError: a name comes twice, or as `split_pair`.

    """
    names: set[str] = set()
    for text in texts:
        name, value = split_pair(option, text, example)
        if name in names:
            raise BraidError(
                f"{option_text(option)} is given twice for '{name}'", hint="omit one of them"
            )
        names.add(name)
        yield name, value


def _parts(texts: Iterable[str], separator: str) -> Iterator[str]:
    """Yield what separators separate in each text."""
    return (part.strip() for text in texts for part in text.split(separator))


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


def _require_size(option: str, name: str, text: str) -> int:
    """Return the size that `text` is. Raises BraidError if it is invalid."""
    size = _parse_size(option, name, text)
    if size is None:
        raise BraidError(
            f"{option_text(option)} for '{name}' is '{text}', expected a size",
            hint=f"such as {option_text(option, {name: 8})}",
        )
    return size


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`.

    Raises:
        BraidError: one is not `name=d0,d1,…` with sizes of at least 0, or a name comes twice.

    """
    return {
        name: _parse_list("shapes", name, dims, (1, 3, 224, 224)) if dims else ()
        for name, dims in _pairs("shapes", texts or ())
    }


def parse_dims(texts: Sequence[str] | None) -> dict[str, int | str]:
    """Read the values of `--dim`: a size, or the name of another dim.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    dims: dict[str, int | str] = {}
    for name, size in _pairs("dims", texts or ()):
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
    return dict(_pairs("state", texts or (), {"past.*": "present.*"}))


def parse_specialize(texts: Sequence[str] | None) -> tuple[dict[str, int], ...]:
    """Read the values of `--specialize`, each of one or more dims separated by commas.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice in one.

    """
    return tuple(_sizes_by_dim("specialize", [text]) for text in texts or ())


def parse_at(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--at`, each of one or more dims separated by commas.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    return _sizes_by_dim("at", texts or ())


def _sizes_by_dim(option: str, texts: Iterable[str]) -> dict[str, int]:
    pairs = _pairs(option, _parts(texts, ","))
    return {name: _require_size(option, name, size) for name, size in pairs}


def parse_buckets(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape-buckets`, each of one or more dims separated by `;`.

    Raises:
        BraidError: one is not `dim=size,size,…`, or a dim comes twice.

    """
    return _parse_sizes("shape_buckets", _parts(texts or (), ";"))


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


def _parse_sizes(option: str, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    pairs = _pairs(option, map(str.strip, texts))
    return {name: _parse_list(option, name, sizes, (1, 2, 4)) for name, sizes in pairs}


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
    for name, value in _pairs("constants", texts or ()):
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
