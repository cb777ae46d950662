"""The types of the values that flags take, and a way to add switches."""

import argparse
from typing import Any


def names(text: str) -> tuple[str, ...]:
    """Return the names that commas separate in `text`."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def settings(text: str) -> dict[str, str]:
    """Return settings by name; they are separated as options of passes are."""
    pairs = (part.partition("=") for part in text.strip("{}").replace(",", " ").split())
    return {name: value for name, _, value in pairs}


def limit(text: str) -> int | None:
    """Return the number beyond which something is left out, None for -1."""
    number = int(text)
    if number < -1:
        raise ValueError(text)
    return None if number == -1 else number


def flag_adder(group: argparse._ArgumentGroup) -> Any:  # pyright: ignore[reportPrivateUsage]
    """Return a function that adds a switch `--x`, and the `--mlir-x` that mlir-opt calls it."""

    def add(*names: str, **kwargs: Any) -> None:
        mlir_names = (
            name.replace("--", "--mlir-", 1)
            for name in names
            if name.startswith(("--print", "--timing"))
        )
        group.add_argument(*names, *mlir_names, action="store_true", **kwargs)

    return add
