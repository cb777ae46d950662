"""Arguments that a function does not take are named; errors of its own lines stay as they are."""

import inspect

import pytest

from braid.support.checked_keywords import checks_arguments, checks_methods
from braid.support.errors import WrongArgumentError


@checks_arguments("halved")
def halved(number: int, /, *, exactly: bool = False) -> float:
    """Return half of a number."""
    return number / 2 if exactly else number // 2


@checks_methods("Thing")
class Thing:
    def __init__(self, name: str) -> None:
        self.name = name

    def renamed(self, name: str = "x") -> "Thing":
        return Thing(name)

    @staticmethod
    def plain(name: str) -> str:
        return name


def test_what_is_right_is_called() -> None:
    assert halved(5) == 2 and halved(5, exactly=True) == 2.5
    assert Thing("a").renamed(name="b").name == "b" and Thing.plain("c") == "c"
    assert str(inspect.signature(halved)) == "(number: int, /, *, exactly: bool = False) -> float"


def test_errors_of_its_own_lines_stay() -> None:
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        halved("5")  # pyright: ignore[reportArgumentType]
    assert not isinstance(caught.value, WrongArgumentError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: halved(5, exact=True),
            "halved has no option 'exact'\nhint: did you mean 'exactly'",
        ),
        (lambda: halved(number=5), "halved has no option 'number'\nhint: its options are exactly"),
        (
            lambda: halved(5, True),
            "takes 1 argument by position, it was given 2\nhint: give exactly",
        ),
        (lambda: halved(), "halved was not given 'number'\nhint: it takes number, exactly"),
        (lambda: Thing(), "Thing was not given 'name'"),
        (lambda: Thing("a").renamed("b", name="c"), "Thing.renamed was given 'name' by position"),
        (lambda: Thing("a").renamed(nam="c"), "Thing.renamed has no option 'nam'"),
    ],
)
def test_what_is_wrong_is_named(call, message: str) -> None:
    with pytest.raises(WrongArgumentError, match=message):
        call()
