"""Modules with very many ops, as text: what `braid-opt` has to read, simplify and print.

Nothing in them can be simplified away, so that all that comes in also goes out.
"""

from collections.abc import Callable, Iterator
from random import Random

_TYPE = "tensor<1x8x4x4xf32>"
_ENCODED = 'tensor<1x8x4x4xf32, #braid.layout<"acdb">>'
_BINARY = ("add", "mul", "maximum", "sub")
_UNARY = ("exp", "tanh", "abs", "sqrt")


def flat(size: int) -> str:
    """One block of named elementwise ops; each reads the one before and one not far before it."""
    random = Random(0)

    def lines() -> Iterator[str]:
        for i in range(1, size + 1):
            last, other = f"%v{i - 1}", f"%v{random.randint(max(0, i - 20), i - 1)}"
            name = f'{{braid.name = "layer{i}"}}'
            if i % 3:
                kind = _BINARY[i % 4]
                signature = f"({_TYPE}, {_TYPE}) -> {_TYPE}"
                yield f"  %v{i} = braid.{kind} {last}, {other} {name} : {signature}"
            else:
                yield f"  %v{i} = braid.{_UNARY[i % 4]} {last} {name} : ({_TYPE}) -> {_TYPE}"

    return _function(lines(), f"%v0: {_TYPE}", f"%v{size}", _TYPE)


def branches(size: int) -> str:
    """Return a chain of `scf.if`, each of eight ops."""

    def lines() -> Iterator[str]:
        for i in range(1, size // 8 + 1):
            last = f"%v{i - 1}"
            yield f"  %v{i} = scf.if %c -> ({_TYPE}) {{"
            yield from _chain(f"a{i}_", last, 4, _TYPE)
            yield f"    scf.yield %a{i}_4 : {_TYPE}"
            yield "  } else {"
            yield from _chain(f"b{i}_", last, 1, _TYPE)
            yield f"    scf.yield %b{i}_1 : {_TYPE}"
            yield "  }"

    return _function(lines(), f"%v0: {_TYPE}, %c: i1", f"%v{size // 8}", _TYPE)


def fused(size: int) -> str:
    """Return a chain of `braid.fused`, each of five ops, with layouts in all types."""

    def lines() -> Iterator[str]:
        for i in range(1, size // 5 + 1):
            name = f'{{braid.name = "group{i}"}}'
            signature = f"({_ENCODED}) -> {_ENCODED}"
            yield f"  %v{i} = braid.fused(%v{i - 1}) {name} : {signature} {{"
            yield f"  ^bb0(%a{i}_0: {_ENCODED}):"
            yield from _chain(f"a{i}_", f"%a{i}_0", 3, _ENCODED)
            yield f"    braid.yield %a{i}_3 : {_ENCODED}"
            yield "  }"

    return _function(lines(), f"%v0: {_ENCODED}", f"%v{size // 5}", _ENCODED)


def opaque(size: int) -> str:
    """Opaque ops of two operands, with a cost for each of four choices of layouts."""
    random = Random(0)

    def choice(index: int) -> str:
        names = f'operands = ["l{index}", "l{index}"], results = ["l{index}"]'
        return f"{{{names}, cost = {random.random():.6e} : f64}}"

    def lines() -> Iterator[str]:
        for i in range(1, size + 1):
            other = random.randint(max(0, i - 20), i - 1)
            layouts = ", ".join(choice(index) for index in range(4))
            attributes = f"{{cost = {random.random():.6e} : f64, layouts = [{layouts}]}}"
            signature = f"({_TYPE}, {_TYPE}) -> {_TYPE}"
            yield f'  %v{i} = braid.opaque "op"(%v{i - 1}, %v{other}) {attributes} : {signature}'

    return _function(lines(), f"%v0: {_TYPE}", f"%v{size}", _TYPE)


FAMILIES: dict[str, Callable[[int], str]] = {
    "flat": flat,
    "branches": branches,
    "fused": fused,
    "opaque": opaque,
}


def _chain(prefix: str, first: str, length: int, type_name: str) -> Iterator[str]:
    last = first
    for i in range(1, length + 1):
        name = f'{{braid.name = "{prefix}{i}"}}'
        kind = _UNARY[i % 4]
        yield f"    %{prefix}{i} = braid.{kind} {last} {name} : ({type_name}) -> {type_name}"
        last = f"%{prefix}{i}"


def _function(lines: Iterator[str], arguments: str, result: str, type_name: str) -> str:
    body = "\n".join(lines)
    return (
        f"func.func @main({arguments}) -> {type_name} {{\n{body}\n"
        f"  func.return {result} : {type_name}\n}}\n"
    )
