"""HLS C++ to designs: what tree-sitter parses becomes processes, nests, arrays and streams.

The C++ that generators write: a top function with `#pragma HLS DATAFLOW` that declares arrays and
streams and calls functions, or holds loops itself; loops that count from 0, perfectly nested, with
pragmas; bodies of assignments, reads, writes and `if`s. Anything else is an error with its line.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_cpp

from benchmarks.fpga.nodes import (
    Node,
    UnsupportedCode,
    bits_of,
    call_of,
    children,
    conjunction,
    declarator_of,
    descendants,
    fail,
    header_of,
    interval_of,
    label_of,
    loop_of,
    method_of,
    name_of,
    shape_of,
    text_of,
)
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

_LANGUAGE = tree_sitter.Language(tree_sitter_cpp.language())
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


@dataclass
class _Scope:
    """Names in a function: of arrays and streams (as the design calls them), scalars, loops.

    `ones` are scalars that are the constant 1.
    """

    storage: dict[str, str] = field(default_factory=dict)
    values: dict[str, int | None] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    ones: set[str] = field(default_factory=set)

    def is_one(self, node: Node) -> bool:
        """Return whether this is the constant 1."""
        if node.type == "number_literal":
            return re.fullmatch(r"1(\.0*)?[fF]?", text_of(node)) is not None
        return text_of(node) in self.ones


class _Reader:
    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.root = tree_sitter.Parser(_LANGUAGE).parse(source).root_node
        if self.root.has_error:
            raise UnsupportedCode(f"{name}: not C++ that can be parsed")
        self.functions = {
            text_of(declarator_of(function).child_by_field_name("declarator")): function
            for function in descendants(self.root, "function_definition")
        }
        self.arrays: dict[str, Array] = {}
        self.streams: dict[str, Stream] = {}
        self.processes: list[Process] = []

    def design(self) -> Design:
        tops = [f for f in self.functions if "DATAFLOW" in text_of(self.functions[f]).upper()]
        called = {
            text_of(call.child_by_field_name("function"))
            for function in self.functions.values()
            for call in descendants(function, "call_expression")
        }
        tops = tops or [name for name in self.functions if name not in called]
        if len(tops) != 1:
            raise UnsupportedCode(f"{self.name}: top functions {tops}, expected one")
        self._top(self.functions[tops[0]])
        return Design(self.name, tuple(self.processes), self.arrays, self.streams)

    def _top(self, function: Node) -> None:
        scope = _Scope()
        for parameter in children(declarator_of(function).child_by_field_name("parameters")):
            self._declare(parameter, scope, "", external=True)
        for statement in children(function.child_by_field_name("body")):
            call = call_of(statement)
            if call is not None:
                self._call(call, scope)
            elif (loop := loop_of(statement)) is not None:
                nests = self._nests(loop, scope)
                self.processes.append(Process(nests[0].name, tuple(nests)))
            else:
                self._simple(statement, scope, "")

    def _call(self, call: Node, outer: _Scope) -> None:
        name = text_of(call.child_by_field_name("function"))
        function = self.functions.get(name)
        if function is None:
            raise fail(call, "a call of a function that is not in the file")
        scope = _Scope()
        parameters = list(children(declarator_of(function).child_by_field_name("parameters")))
        arguments = list(children(call.child_by_field_name("arguments")))
        for parameter, argument in zip(parameters, arguments, strict=True):
            inner = name_of(parameter.child_by_field_name("declarator"))
            if argument.type == "identifier" and text_of(argument) in outer.storage:
                scope.storage[inner] = outer.storage[text_of(argument)]
            else:
                scope.values[inner] = None
                if outer.is_one(argument):
                    scope.ones.add(inner)
        instance = f"{name}.{sum(p.name.split('.')[0] == name for p in self.processes)}"
        nests: list[Nest] = []
        for statement in children(function.child_by_field_name("body")):
            if (loop := loop_of(statement)) is not None:
                nests += self._nests(loop, scope)
            else:
                self._simple(statement, scope, f"{instance}.")
        self.processes.append(Process(instance, tuple(nests)))

    def _simple(self, statement: Node, scope: _Scope, prefix: str) -> None:
        """Read a statement that is not executed: declarations, pragmas, the return."""
        if statement.type == "preproc_call":
            self._pragma(text_of(statement), scope)
        elif statement.type == "declaration":
            self._declare(statement, scope, prefix)
        elif statement.type != "return_statement":
            raise fail(statement, "neither a loop nor a declaration")

    def _declare(self, node: Node, scope: _Scope, prefix: str, *, external: bool = False) -> None:
        kind = text_of(node.child_by_field_name("type"))
        declarator = node.child_by_field_name("declarator")
        shape = shape_of(declarator)
        local = name_of(declarator)
        name = prefix + local
        if "stream" in kind:
            bits = bits_of(kind[kind.index("<") + 1 : kind.rindex(">")])
            self.streams[name] = Stream(name, shape, bits, 2)
        else:
            nothing = (("none", 1),) * len(shape)
            self.arrays[name] = Array(name, shape, bits_of(kind), nothing, external)
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
        name = label_of(loop)
        loops: list[Loop] = []
        interval: int | None = None
        inner = _Scope(scope.storage, dict(scope.values), {}, scope.ones)
        while interval is None:
            one, body = header_of(loop)
            loops.append(one)
            inner.loops[one.name] = one.trips
            statements = list(children(body))
            interval = interval_of(statements)
            rest = [s for s in statements if s.type != "preproc_call"]
            nested = [n for s in rest if (n := loop_of(s)) is not None]
            if interval is None and len(nested) == len(rest) == 1:
                loop = nested[0]
            elif interval is None and nested:
                raise fail(loop, "an imperfect nest that is not pipelined")
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
        loop = loop_of(node)
        if loop is not None:
            one, body = header_of(loop)
            self.scope.loops[one.name] = one.trips
            self.block(list(children(body)), self.guards, (*self.loops, one))
        elif node.type == "if_statement":
            if node.child_by_field_name("alternative") is not None:
                raise fail(node, "an else branch")
            conditions = conjunction(node.child_by_field_name("condition"))
            body = node.child_by_field_name("consequence")
            self.block(
                list(children(body)),
                (*self.guards, *(self._condition(one) for one in conditions)),
                self.loops,
            )
        elif node.type == "declaration":
            declarator = node.child_by_field_name("declarator")
            if declarator.type != "init_declarator":
                raise fail(node, "a declaration without a value")
            value = self._value(declarator.child_by_field_name("value"))
            self.scope.values[name_of(declarator)] = value
        elif node.type == "expression_statement":
            self._expression(next(children(node)))
        elif node.type not in ("preproc_call", "return_statement"):
            raise fail(node, "a statement")

    def _expression(self, node: Node) -> None:
        if node.type == "assignment_expression":
            value = self._value(node.child_by_field_name("right"))
            name, index = self._place(node.child_by_field_name("left"))
            self._emit("store", [value], name=name, index=index)
            return
        method = method_of(node)
        if method is None or method[1] != "write":
            raise fail(node, "an expression")
        value = self._value(method[2][0])
        name, index = self._place(method[0])
        self._emit("write", [value], name=name, index=index)

    def _place(self, node: Node) -> tuple[str, tuple[Affine, ...]]:
        index: list[Affine] = []
        while node.type == "subscript_expression":
            argument = node.child_by_field_name("indices")
            index.insert(0, self._affine(next(children(argument))))
            node = node.child_by_field_name("argument")
        name = self.scope.storage.get(text_of(node))
        if name is None:
            raise fail(node, "not an array or stream")
        return name, tuple(index)

    def _value(self, node: Node) -> int | None:
        if node.type in ("parenthesized_expression", "cast_expression"):
            return self._value(node.child_by_field_name("value") or next(children(node)))
        if node.type == "number_literal":
            return None
        if node.type == "identifier":
            name = text_of(node)
            if name in self.scope.values:
                return self.scope.values[name]
            if name in self.scope.storage:
                return self._emit("load", [], name=self.scope.storage[name], index=())
            raise fail(node, "an unknown name")
        if node.type == "subscript_expression":
            name, index = self._place(node)
            return self._emit("load", [], name=name, index=index)
        if node.type == "unary_expression":
            return self._emit("neg", [self._value(node.child_by_field_name("argument"))])
        if node.type == "binary_expression":
            operator = text_of(node.child_by_field_name("operator"))
            left, right = (node.child_by_field_name(side) for side in ("left", "right"))
            sides = [self._value(left), self._value(right)]
            kind = "compare" if operator in _COMPARISONS else _OPERATORS.get(operator)
            if operator == "/" and self.scope.is_one(left):
                kind = "reciprocal"
            if kind is None:
                raise fail(node, "an operator")
            if all(side is None for side in sides):
                return None  # folded
            return self._emit(kind, sides)
        if node.type == "conditional_expression":
            parts = ("condition", "consequence", "alternative")
            return self._emit(
                "select", [self._value(node.child_by_field_name(part)) for part in parts]
            )
        method = method_of(node)
        if method is not None and method[1] == "read":
            name, index = self._place(method[0])
            return self._emit("read", [], name=name, index=index)
        if node.type == "call_expression":
            kind = text_of(node.child_by_field_name("function")).removeprefix("hls::")
            given = [self._value(a) for a in children(node.child_by_field_name("arguments"))]
            return None if all(one is None for one in given) else self._emit(kind, given)
        raise fail(node, "a value")

    def _condition(self, node: Node) -> Condition:
        if node.type == "parenthesized_expression":
            return self._condition(next(children(node)))
        operator = text_of(node.child_by_field_name("operator"))
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
            raise fail(node, "a condition")
        return forms[operator]

    def _affine(self, node: Node) -> Affine:
        if node.type == "parenthesized_expression":
            return self._affine(next(children(node)))
        if node.type == "number_literal":
            return Affine(int(text_of(node)))
        if node.type == "identifier" and text_of(node) in self.scope.loops:
            return Affine(0, ((text_of(node), 1),))
        if node.type == "unary_expression":
            return self._affine(node.child_by_field_name("argument")).scaled(-1)
        if node.type == "binary_expression":
            operator = text_of(node.child_by_field_name("operator"))
            left = self._affine(node.child_by_field_name("left"))
            right = self._affine(node.child_by_field_name("right"))
            if operator in "+-":
                return left + right.scaled(1 if operator == "+" else -1)
            if operator == "*" and not (left.terms and right.terms):
                whole, factor = (left, right) if left.terms else (right, left)
                return whole.scaled(factor.constant)
        raise fail(node, "an index that is not affine in loops")


def read_design(path: Path) -> Design:
    """Return the design in a file; `UnsupportedCode` says what it cannot read."""
    return _Reader(path.stem, path.read_bytes()).design()
