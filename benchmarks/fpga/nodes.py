"""Nodes of parsed C++: names, shapes, loops with their pragmas, calls."""

import re
from collections.abc import Iterator
from typing import Any

from braid.solvers.hls.nests import Loop

Node = Any
_BITS = {"float": 32, "double": 64, "int": 32, "bool": 1, "half": 16, "char": 8, "short": 16}


class UnsupportedCode(Exception):
    """C++ outside of the subset; has the place and the construct."""


def fail(node: Node, what: str) -> UnsupportedCode:
    line, column = node.start_point
    text = node.text.decode().split("\n")[0][:80]
    return UnsupportedCode(f"{line + 1}:{column + 1}: {what}: `{text}`")


def text_of(node: Node) -> str:
    return node.text.decode()


def children(node: Node) -> Iterator[Node]:
    return (child for child in node.named_children if child.type != "comment")


def descendants(node: Node, kind: str) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        yield from descendants(child, kind)


def declarator_of(function: Node) -> Node:
    return function.child_by_field_name("declarator")


def name_of(node: Node) -> str:
    while node.type != "identifier":
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(children(node))
    return text_of(node)


def shape_of(node: Node) -> tuple[int, ...]:
    shape: list[int] = []
    while node.type != "identifier":
        if node.type == "array_declarator":
            shape.insert(0, int(text_of(node.child_by_field_name("size"))))
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(children(node))
    return tuple(shape)


def bits_of(kind: str) -> int:
    sized = re.fullmatch(r"(?:ap_u?int\s*<\s*(\d+)\s*>|u?int(\d+)_t)", kind.strip())
    if sized:
        return int(sized[1] or sized[2])
    if kind.strip() not in _BITS:
        raise UnsupportedCode(f"type {kind}, expected one of {(*_BITS,)}")
    return _BITS[kind.strip()]


def call_of(statement: Node) -> Node | None:
    if statement.type != "expression_statement":
        return None
    inner = next(children(statement))
    return inner if inner.type == "call_expression" else None


def loop_of(statement: Node) -> Node | None:
    if statement.type == "labeled_statement":
        statement = list(children(statement))[-1]
    return statement if statement.type == "for_statement" else None


def label_of(loop: Node) -> str:
    parent = loop.parent
    if parent is not None and parent.type == "labeled_statement":
        return text_of(parent.child_by_field_name("label"))
    return f"line{loop.start_point[0] + 1}"


def header_of(loop: Node) -> tuple[Loop, Node]:
    """Of `for (int v = 0; v < n; v++)`."""
    header = text_of(loop).split("{")[0]
    form = re.match(
        r"for\s*\(\s*\w+\s+(\w+)\s*=\s*0\s*;\s*(\w+)\s*<\s*(\d+)\s*;\s*(?:\1\+\+|\+\+\1|\1\s*\+=\s*1)\s*\)",
        header,
    )
    if form is None or form[1] != form[2]:
        raise fail(loop, "a loop that does not count from 0 by 1 to a known end")
    return Loop(form[1], int(form[3])), loop.child_by_field_name("body")


def interval_of(statements: list[Node]) -> int | None:
    for statement in statements:
        form = re.search(r"pipeline(?:\s+II\s*=\s*(\d+))?", text_of(statement), re.IGNORECASE)
        if statement.type == "preproc_call" and form and "off" not in text_of(statement):
            return int(form[1] or 1)
    return None


def conjunction(node: Node) -> list[Node]:
    while node.type in ("parenthesized_expression", "condition_clause"):
        node = node.child_by_field_name("value") or next(children(node))
    if node.type == "binary_expression":
        if text_of(node.child_by_field_name("operator")) == "&&":
            sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
            return [part for side in sides for part in conjunction(side)]
        if text_of(node.child_by_field_name("operator")) == "||":
            raise fail(node, "a disjunction")
    return [node]


def method_of(node: Node) -> tuple[Node, str, list[Node]] | None:
    if node.type != "call_expression":
        return None
    function = node.child_by_field_name("function")
    if function.type != "field_expression":
        return None
    arguments = list(children(node.child_by_field_name("arguments")))
    method = text_of(function.child_by_field_name("field"))
    return function.child_by_field_name("argument"), method, arguments
