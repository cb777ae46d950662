"""Stable names survive rewriting: one is a string, several an array, none is no attribute."""

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.test import TestOp as AnyOp

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.names import names_of, set_names, union_names


def named(*names: str) -> AnyOp:
    op = AnyOp()
    set_names(op, names)
    return op


def test_form_of_the_attribute() -> None:
    assert NAME not in named().attributes
    assert named("a").attributes[NAME] == StringAttr("a")
    two = ArrayAttr([StringAttr("a"), StringAttr("b")])
    assert named("a", "b", "a").attributes[NAME] == two


def test_names_are_read_as_they_were_set() -> None:
    for names in ((), ("a",), ("a", "b")):
        assert names_of(named(*names)) == names


def test_setting_no_names_removes_them() -> None:
    op = named("a")
    set_names(op, [])
    assert names_of(op) == () and NAME not in op.attributes


def test_union_keeps_the_own_names_first() -> None:
    op = named("b")
    union_names(op, named("a", "b"), named(), named("c"))
    assert names_of(op) == ("b", "a", "c")
    unnamed = named()
    union_names(unnamed, named())
    assert NAME not in unnamed.attributes
