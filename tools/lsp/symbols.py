"""The outline of a text: its functions, modules and other ops with a symbol or a region."""

from lsprotocol.types import DocumentSymbol, SymbolKind
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.dialects.braid.names import names_of
from braid.frontends.mlir.source_map import ParsedOp
from braid.tools.lsp.analysis import Analysis, Part

_KINDS = {"builtin.module": SymbolKind.Module, "func.func": SymbolKind.Function}


def symbols_of(analysis: Analysis) -> list[DocumentSymbol]:
    """Return the outermost symbols in textual order, each with those in it."""
    return [symbol for part in analysis.parts for symbol in _of_part(analysis, part)]


def _of_part(analysis: Analysis, part: Part) -> list[DocumentSymbol]:
    inner: dict[Operation | None, list[DocumentSymbol]] = {None: []}
    shown = (each for each in part.map.ops if each.op in part.names.symbols or each.op.regions)
    for parsed in sorted(shown, key=lambda each: each.place.start):
        around = parsed.op.parent_op()
        while around not in inner:
            around = around.parent_op() if around is not None else None
        inner[parsed.op] = []
        inner[around].append(_symbol(analysis, part, parsed, inner[parsed.op]))
    return inner[None]


def _symbol(
    analysis: Analysis, part: Part, parsed: ParsedOp, children: list[DocumentSymbol]
) -> DocumentSymbol:
    definition = part.names.symbols.get(parsed.op)
    selection = definition.place if definition is not None else parsed.name
    stable = ", ".join(names_of(parsed.op))
    is_module = isinstance(parsed.op, ModuleOp)
    kind = SymbolKind.Namespace if definition is None else SymbolKind.Object
    return DocumentSymbol(
        name=definition.name if definition is not None else parsed.op.name,
        detail=parsed.op.name if definition is not None else stable,
        kind=SymbolKind.Module if is_module else _KINDS.get(parsed.op.name, kind),
        range=analysis.positions.range(parsed.place, part.start),
        selection_range=analysis.positions.range(selection, part.start),
        children=children,
    )
