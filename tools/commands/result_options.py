"""Options of what may be done to results, of all commands that compile models."""

from dataclasses import dataclass
from typing import Annotated

import typer

from braid.support.errors import BraidError

NumericsOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="fast: also algorithms whose sums cancel, such as Winograd's, and scales in "
        "weights; strict: none of these. By default what BRAID_NUMERICS says, else fast.",
    ),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE",
        help="bf16: products by weights are made of bf16, with sums in f32, where the CPU does so "
        "faster; model: in the model's types. By default what BRAID_PRECISION says, else model.",
    ),
]


@dataclass(frozen=True)
class ResultOptions:
    """What may be done to results; None is as the environment says."""

    numerics: NumericsOption = None
    precision: PrecisionOption = None

    @property
    def given(self) -> dict[str, str]:
        """Settings that the environment does not say, by the names of options."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def refuse(self, why: str) -> None:
        """Raises BraidError with the reason where something is given."""
        for name, value in self.given.items():
            refuse_option(f"--{name}", value, why)


def refuse_option(name: str, value: str | None, why: str) -> None:
    """Raises BraidError with the reason where an option of what is compiled is given."""
    if value is not None:
        raise BraidError(f"{name} is for what is compiled, and {why}")
