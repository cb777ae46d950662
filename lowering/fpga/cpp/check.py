"""Rules of synthesis that C++ compilers do not know, checked in the text of a design.

The rules of UG1399 ("Dataflow", "Unsupported C/C++ Constructs") that designs can break: each stream
has one producer and one consumer, loops have known bounds, loops and functions one exit, and there
is no recursion and no memory that is allocated.
"""

import re
from collections.abc import Iterator
from typing import Any

from braid.support.errors import BraidError

_EXITS = {"break_statement": "break", "goto_statement": "goto", "throw_statement": "throw"}
_LOOPS = ("for_statement", "while_statement", "do_statement")
_BOUNDED = re.compile(
    r"for\s*\(\s*int\s+(\w+)\s*=\s*\d+\s*;\s*\1\s*(?:<|<=|>|>=)\s*\d+\s*;\s*\1\s*(?:\+\+|--)\s*\)"
)


def check_rules(text: str) -> None:
    """Raise BraidError with every rule that is broken, and where."""
    found = list(broken_rules(text))
    if found:
        raise BraidError("the design cannot be synthesized: " + "; ".join(found))


def broken_rules(text: str) -> Iterator[str]:
    """Yield errors with their lines; nothing if tree-sitter is not installed."""
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError:
        return
    language = tree_sitter.Language(tree_sitter_cpp.language())
    root = tree_sitter.Parser(language).parse(text.encode()).root_node
    if root.has_error:
        yield "it is not C++"
        return
    functions = {
        _name(node.child_by_field_name("declarator")): node
        for node in _nodes(root)
        if node.type == "function_definition"
    }
    for name, function in functions.items():
        yield from _exits(function)
        calls = [call for call in _calls(function) if call in functions]
        if name in calls:
            yield f"line {_line(function)}: {name} calls itself"
        if "HLS DATAFLOW" in _text(function):
            yield from _streams(function, functions)


def _exits(function: Any) -> Iterator[str]:
    body = function.child_by_field_name("body")
    returns = [node for node in _nodes(body) if node.type == "return_statement"]
    if len(returns) > 1 or (returns and returns[0].parent != body):
        yield f"line {_line(returns[0])}: a return that is not the end of the function"
    for node in _nodes(body):
        if node.type in _EXITS:
            yield f"line {_line(node)}: {_EXITS[node.type]} gives a loop a second exit"
        elif node.type in _LOOPS and not _bounded(node):
            yield f"line {_line(node)}: a loop without known bounds"
        elif node.type in ("new_expression", "delete_expression"):
            yield f"line {_line(node)}: memory that is allocated"


def _bounded(loop: Any) -> bool:
    """Return whether a loop counts to a number and nothing in it changes the counter."""
    form = _BOUNDED.match(_text(loop))
    if form is None:
        return False
    for node in _nodes(loop.child_by_field_name("body")):
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression":
            target = node.child_by_field_name("argument")
        else:
            continue
        if _text(target) == form[1]:
            return False
    return True


def _streams(top: Any, functions: dict[str, Any]) -> Iterator[str]:
    """Return who reads and who writes each stream that is declared in a DATAFLOW region."""
    inside = _declared(top.child_by_field_name("body"), "declaration")
    ports = _declared(top.child_by_field_name("declarator"), "parameter_declaration")
    uses: dict[str, dict[str, list[str]]] = {
        name: {"read": [], "write": []} for name in (*inside, *ports)
    }
    for call in (node for node in _nodes(top) if node.type == "call_expression"):
        name = _text(call.child_by_field_name("function"))
        if name not in functions:
            continue
        inner = functions[name]
        parameters = [
            _name(node.child_by_field_name("declarator"))
            for node in _nodes(inner)
            if node.type == "parameter_declaration"
        ]
        arguments = [_text(node) for node in call.child_by_field_name("arguments").named_children]
        for parameter, argument in zip(parameters, arguments, strict=False):
            for method in ("read", "write") if argument in uses else ():
                if re.search(rf"\b{parameter}(\[[^]]*\])*\.{method}\(", _text(inner)):
                    uses[argument][method].append(name)
    for stream, sides in uses.items():
        for method, who in sides.items():
            role = {"read": "consumer", "write": "producer"}[method]
            if len(who) > 1:
                yield f"stream {stream} has {len(who)} {role}s: {', '.join(who)}"
            elif not who and stream in inside:
                yield f"stream {stream} has no {role}"


def _declared(node: Any, kind: str) -> list[str]:
    """Return the names of streams."""
    return [
        _name(one.child_by_field_name("declarator"))
        for one in _nodes(node)
        if one.type == kind and "hls::stream" in _text(one)
    ]


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.named_children:
        yield from _nodes(child)


def _calls(function: Any) -> list[str]:
    return [
        _text(node.child_by_field_name("function"))
        for node in _nodes(function)
        if node.type == "call_expression"
    ]


def _name(node: Any) -> str:
    while node.type != "identifier":
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else node.named_children[0]
    return _text(node)


def _text(node: Any) -> str:
    return node.text.decode()


def _line(node: Any) -> int:
    return node.start_point[0] + 1
