"""HLS C++ to designs: what tree-sitter parses becomes processes, nests, arrays and streams.

The C++ that generators write: a top function with `#pragma HLS DATAFLOW` that declares arrays and
streams and calls functions, or holds loops itself; loops that count from 0, perfectly nested, with
pragmas; bodies of assignments, reads, writes and `if`s. Anything else is an error with its line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_cpp

from braid.solvers.hls.nests import (
    Affine,
    Array,
    Condition,
    Design,
    Loop,
    Nest,
    Op,
    Process,
    Stream,
)

Node = Any
_LANGUAGE = tree_sitter.Language(tree_sitter_cpp.language())
_BITS = {"float": 32, "double": 64, "int": 32, "bool": 1, "half": 16, "char": 8, "short": 16}
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


class UnsupportedCode(Exception):
    """C++ outside of the subset; says where and what."""


def _fail(node: Node, what: str) -> UnsupportedCode:
    line, column = node.start_point
    text = node.text.decode().split("\n")[0][:80]
    return UnsupportedCode(f"{line + 1}:{column + 1}: {what}: `{text}`")


def _text(node: Node) -> str:
    return node.text.decode()


def _children(node: Node) -> Iterator[Node]:
    return (child for child in node.named_children if child.type != "comment")


@dataclass
class _Scope:
    """Names in a function: of arrays and streams (as the design calls them), scalars, loops."""

    storage: dict[str, str] = field(default_factory=dict)
    values: dict[str, int | None] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)


class _Reader:
    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.root = tree_sitter.Parser(_LANGUAGE).parse(source).root_node
        if self.root.has_error:
            raise UnsupportedCode(f"{name}: not C++ that can be parsed")
        self.functions = {
            _text(_declarator(function).child_by_field_name("declarator")): function
            for function in _descendants(self.root, "function_definition")
        }
        self.arrays: dict[str, Array] = {}
        self.streams: dict[str, Stream] = {}
        self.processes: list[Process] = []

    def design(self) -> Design:
        tops = [f for f in self.functions if "DATAFLOW" in _text(self.functions[f]).upper()]
        called = {
            _text(call.child_by_field_name("function"))
            for function in self.functions.values()
            for call in _descendants(function, "call_expression")
        }
        tops = tops or [name for name in self.functions if name not in called]
        if len(tops) != 1:
            raise UnsupportedCode(f"{self.name}: top functions {tops}, expected one")
        self._top(self.functions[tops[0]])
        return Design(self.name, tuple(self.processes), self.arrays, self.streams)

    def _top(self, function: Node) -> None:
        scope = _Scope()
        for parameter in _children(_declarator(function).child_by_field_name("parameters")):
            self._declare(parameter, scope, "", external=True)
        for statement in _children(function.child_by_field_name("body")):
            call = _call_of(statement)
            if call is not None:
                self._call(call, scope)
            elif (loop := _loop_of(statement)) is not None:
                nests = self._nests(loop, scope)
                self.processes.append(Process(nests[0].name, tuple(nests)))
            else:
                self._simple(statement, scope, "")

    def _call(self, call: Node, outer: _Scope) -> None:
        name = _text(call.child_by_field_name("function"))
        function = self.functions.get(name)
        if function is None:
            raise _fail(call, "a call of a function that is not in the file")
        scope = _Scope()
        parameters = list(_children(_declarator(function).child_by_field_name("parameters")))
        arguments = list(_children(call.child_by_field_name("arguments")))
        for parameter, argument in zip(parameters, arguments, strict=True):
            inner = _name_of(parameter.child_by_field_name("declarator"))
            if argument.type == "identifier" and _text(argument) in outer.storage:
                scope.storage[inner] = outer.storage[_text(argument)]
            else:
                scope.values[inner] = None
        instance = f"{name}.{sum(p.name.split('.')[0] == name for p in self.processes)}"
        nests: list[Nest] = []
        for statement in _children(function.child_by_field_name("body")):
            if (loop := _loop_of(statement)) is not None:
                nests += self._nests(loop, scope)
            else:
                self._simple(statement, scope, f"{instance}.")
        self.processes.append(Process(instance, tuple(nests)))

    def _simple(self, statement: Node, scope: _Scope, prefix: str) -> None:
        """What is not executed: declarations, pragmas, the return."""
        if statement.type == "preproc_call":
            self._pragma(_text(statement), scope)
        elif statement.type == "declaration":
            self._declare(statement, scope, prefix)
        elif statement.type != "return_statement":
            raise _fail(statement, "neither a loop nor a declaration")

    def _declare(self, node: Node, scope: _Scope, prefix: str, *, external: bool = False) -> None:
        kind = _text(node.child_by_field_name("type"))
        declarator = node.child_by_field_name("declarator")
        shape = _shape_of(declarator)
        local = _name_of(declarator)
        name = prefix + local
        if "stream" in kind:
            bits = _bits(kind[kind.index("<") + 1 : kind.rindex(">")])
            self.streams[name] = Stream(name, shape, bits, 2)
        else:
            nothing = (("none", 1),) * len(shape)
            self.arrays[name] = Array(name, shape, _bits(kind), nothing, external)
        scope.storage[local] = name

    def _pragma(self, text: str, scope: _Scope) -> None:
        options = dict(re.findall(r"(\w+)\s*=\s*(\w+)", text))
        words = text.lower().split("hls", 1)[-1].split()
        name = scope.storage.get(options.get("variable", ""), "")
        if words[0] == "stream" and name in self.streams:
            self.streams[name] = replace(self.streams[name], depth=int(options["depth"]))
        elif words[0] == "array_partition" and name in self.arrays:
            array = self.arrays[name]
            kind = next((k for k in ("cyclic", "block", "complete") if k in words), "complete")
            kind = options.get("type", kind)
            dim, factor = int(options.get("dim", 1)), int(options.get("factor", 1))
            self.arrays[name] = replace(
                array,
                partitions=tuple(
                    (kind, factor) if dim in (0, at + 1) else given
                    for at, given in enumerate(array.partitions)
                ),
            )

    def _nests(self, loop: Node, scope: _Scope) -> list[Nest]:
        name = _label_of(loop)
        loops: list[Loop] = []
        interval: int | None = None
        inner = _Scope(scope.storage, dict(scope.values), {})
        while interval is None:
            one, body = _header(loop)
            loops.append(one)
            inner.loops[one.name] = one.trips
            statements = list(_children(body))
            interval = _interval(statements)
            rest = [s for s in statements if s.type != "preproc_call"]
            nested = [n for s in rest if (n := _loop_of(s)) is not None]
            if interval is None and len(nested) == len(rest) == 1:
                loop = nested[0]
            elif interval is None and nested:
                raise _fail(loop, "an imperfect nest that is not pipelined")
            elif interval is None:
                interval = 1  # Vitis pipelines innermost loops unless told otherwise.
        ops = _Body(self, inner)
        ops.block(statements, (), ())
        return [Nest(name, tuple(loops), interval, tuple(ops.ops), loop.start_point[0] + 1)]


class _Body:
    """Statements of a pipelined loop as ops."""

    def __init__(self, reader: _Reader, scope: _Scope) -> None:
        self.reader, self.scope = reader, scope
        self.ops: list[Op] = []

    def block(
        self, statements: list[Node], guards: tuple[Condition, ...], loops: tuple[Loop, ...]
    ) -> None:
        self.guards, self.loops = guards, loops
        for statement in statements:
            self._statement(statement)
            self.guards, self.loops = guards, loops

    def _emit(self, kind: str, operands: list[int | None], **rest: Any) -> int:
        known = tuple(one for one in operands if one is not None)
        self.ops.append(Op(kind, known, guards=self.guards, unrolled=self.loops, **rest))
        return len(self.ops) - 1

    def _statement(self, node: Node) -> None:
        loop = _loop_of(node)
        if loop is not None:
            one, body = _header(loop)
            self.scope.loops[one.name] = one.trips
            self.block(list(_children(body)), self.guards, (*self.loops, one))
        elif node.type == "if_statement":
            if node.child_by_field_name("alternative") is not None:
                raise _fail(node, "an else branch")
            conditions = _conjunction(node.child_by_field_name("condition"))
            body = node.child_by_field_name("consequence")
            self.block(
                list(_children(body)),
                (*self.guards, *(self._condition(one) for one in conditions)),
                self.loops,
            )
        elif node.type == "declaration":
            declarator = node.child_by_field_name("declarator")
            if declarator.type != "init_declarator":
                raise _fail(node, "a declaration without a value")
            value = self._value(declarator.child_by_field_name("value"))
            self.scope.values[_name_of(declarator)] = value
        elif node.type == "expression_statement":
            self._expression(next(_children(node)))
        elif node.type not in ("preproc_call", "return_statement"):
            raise _fail(node, "a statement")

    def _expression(self, node: Node) -> None:
        if node.type == "assignment_expression":
            value = self._value(node.child_by_field_name("right"))
            name, index = self._place(node.child_by_field_name("left"))
            self._emit("store", [value], name=name, index=index)
            return
        method = _method_of(node)
        if method is None or method[1] != "write":
            raise _fail(node, "an expression")
        value = self._value(method[2][0])
        name, index = self._place(method[0])
        self._emit("write", [value], name=name, index=index)

    def _place(self, node: Node) -> tuple[str, tuple[Affine, ...]]:
        index: list[Affine] = []
        while node.type == "subscript_expression":
            argument = node.child_by_field_name("indices")
            index.insert(0, self._affine(next(_children(argument))))
            node = node.child_by_field_name("argument")
        name = self.scope.storage.get(_text(node))
        if name is None:
            raise _fail(node, "not an array or stream")
        return name, tuple(index)

    def _value(self, node: Node) -> int | None:
        if node.type in ("parenthesized_expression", "cast_expression"):
            return self._value(node.child_by_field_name("value") or next(_children(node)))
        if node.type == "number_literal":
            return None
        if node.type == "identifier":
            name = _text(node)
            if name in self.scope.values:
                return self.scope.values[name]
            if name in self.scope.storage:
                return self._emit("load", [], name=self.scope.storage[name], index=())
            raise _fail(node, "an unknown name")
        if node.type == "subscript_expression":
            name, index = self._place(node)
            return self._emit("load", [], name=name, index=index)
        if node.type == "unary_expression":
            return self._emit("neg", [self._value(node.child_by_field_name("argument"))])
        if node.type == "binary_expression":
            operator = _text(node.child_by_field_name("operator"))
            sides = [self._value(node.child_by_field_name(s)) for s in ("left", "right")]
            kind = "compare" if operator in _COMPARISONS else _OPERATORS.get(operator)
            if kind is None:
                raise _fail(node, "an operator")
            if all(side is None for side in sides):
                return None  # folded
            return self._emit(kind, sides)
        if node.type == "conditional_expression":
            parts = ("condition", "consequence", "alternative")
            return self._emit(
                "select", [self._value(node.child_by_field_name(part)) for part in parts]
            )
        method = _method_of(node)
        if method is not None and method[1] == "read":
            name, index = self._place(method[0])
            return self._emit("read", [], name=name, index=index)
        if node.type == "call_expression":
            kind = _text(node.child_by_field_name("function")).removeprefix("hls::")
            given = [self._value(a) for a in _children(node.child_by_field_name("arguments"))]
            return None if all(one is None for one in given) else self._emit(kind, given)
        raise _fail(node, "a value")

    def _condition(self, node: Node) -> Condition:
        if node.type == "parenthesized_expression":
            return self._condition(next(_children(node)))
        operator = _text(node.child_by_field_name("operator"))
        left = self._affine(node.child_by_field_name("left"))
        difference = left + self._affine(node.child_by_field_name("right")).scaled(-1)
        one = Affine(1)
        forms = {
            "==": Condition(difference),
            ">=": Condition(difference, True),
            "<=": Condition(difference.scaled(-1), True),
            ">": Condition(difference + one.scaled(-1), True),
            "<": Condition(difference.scaled(-1) + one.scaled(-1), True),
        }
        if operator not in forms:
            raise _fail(node, "a condition")
        return forms[operator]

    def _affine(self, node: Node) -> Affine:
        if node.type == "parenthesized_expression":
            return self._affine(next(_children(node)))
        if node.type == "number_literal":
            return Affine(int(_text(node)))
        if node.type == "identifier" and _text(node) in self.scope.loops:
            return Affine(0, ((_text(node), 1),))
        if node.type == "unary_expression":
            return self._affine(node.child_by_field_name("argument")).scaled(-1)
        if node.type == "binary_expression":
            operator = _text(node.child_by_field_name("operator"))
            left = self._affine(node.child_by_field_name("left"))
            right = self._affine(node.child_by_field_name("right"))
            if operator in "+-":
                return left + right.scaled(1 if operator == "+" else -1)
            if operator == "*" and not (left.terms and right.terms):
                whole, factor = (left, right) if left.terms else (right, left)
                return whole.scaled(factor.constant)
        raise _fail(node, "an index that is not affine in loops")


def _descendants(node: Node, kind: str) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        yield from _descendants(child, kind)


def _declarator(function: Node) -> Node:
    return function.child_by_field_name("declarator")


def _name_of(node: Node) -> str:
    while node.type != "identifier":
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(_children(node))
    return _text(node)


def _shape_of(node: Node) -> tuple[int, ...]:
    shape: list[int] = []
    while node.type != "identifier":
        if node.type == "array_declarator":
            shape.insert(0, int(_text(node.child_by_field_name("size"))))
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(_children(node))
    return tuple(shape)


def _bits(kind: str) -> int:
    sized = re.fullmatch(r"(?:ap_u?int\s*<\s*(\d+)\s*>|u?int(\d+)_t)", kind.strip())
    if sized:
        return int(sized[1] or sized[2])
    if kind.strip() not in _BITS:
        raise UnsupportedCode(f"type {kind}, expected one of {(*_BITS,)}")
    return _BITS[kind.strip()]


def _call_of(statement: Node) -> Node | None:
    if statement.type != "expression_statement":
        return None
    inner = next(_children(statement))
    return inner if inner.type == "call_expression" else None


def _loop_of(statement: Node) -> Node | None:
    if statement.type == "labeled_statement":
        statement = list(_children(statement))[-1]
    return statement if statement.type == "for_statement" else None


def _label_of(loop: Node) -> str:
    parent = loop.parent
    if parent is not None and parent.type == "labeled_statement":
        return _text(parent.child_by_field_name("label"))
    return f"line{loop.start_point[0] + 1}"


def _header(loop: Node) -> tuple[Loop, Node]:
    """Of `for (int v = 0; v < n; v++)`."""
    header = _text(loop).split("{")[0]
    form = re.match(
        r"for\s*\(\s*\w+\s+(\w+)\s*=\s*0\s*;\s*(\w+)\s*<\s*(\d+)\s*;\s*(?:\1\+\+|\+\+\1|\1\s*\+=\s*1)\s*\)",
        header,
    )
    if form is None or form[1] != form[2]:
        raise _fail(loop, "a loop that does not count from 0 by 1 to a known end")
    return Loop(form[1], int(form[3])), loop.child_by_field_name("body")


def _interval(statements: list[Node]) -> int | None:
    for statement in statements:
        form = re.search(r"pipeline(?:\s+II\s*=\s*(\d+))?", _text(statement), re.IGNORECASE)
        if statement.type == "preproc_call" and form and "off" not in _text(statement):
            return int(form[1] or 1)
    return None


def _conjunction(node: Node) -> list[Node]:
    while node.type in ("parenthesized_expression", "condition_clause"):
        node = node.child_by_field_name("value") or next(_children(node))
    if node.type == "binary_expression":
        if _text(node.child_by_field_name("operator")) == "&&":
            sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
            return [part for side in sides for part in _conjunction(side)]
        if _text(node.child_by_field_name("operator")) == "||":
            raise _fail(node, "a disjunction")
    return [node]


def _method_of(node: Node) -> tuple[Node, str, list[Node]] | None:
    if node.type != "call_expression":
        return None
    function = node.child_by_field_name("function")
    if function.type != "field_expression":
        return None
    arguments = list(_children(node.child_by_field_name("arguments")))
    method = _text(function.child_by_field_name("field"))
    return function.child_by_field_name("argument"), method, arguments


def read_design(path: Path) -> Design:
    """The design in a file; `UnsupportedCode` says what it cannot read."""
    return _Reader(path.stem, path.read_bytes()).design()
