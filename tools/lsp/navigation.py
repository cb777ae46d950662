"""Go to definition, and find references, of values, symbols, blocks and aliases."""

from lsprotocol.types import Location

from braid.frontends.mlir.source_map import Definition
from braid.tools.lsp.analysis import Analysis, Part


def definition_at(analysis: Analysis, uri: str, position: int) -> Location | None:
    """Return where the name at `position` is defined, None where no name is, or nothing defines
    it.
    """
    found = _definition(analysis, position)
    if found is None:
        return None
    part, definition = found
    return Location(uri, analysis.positions.range(definition.place, part.start))


def references_at(
    analysis: Analysis, uri: str, position: int, *, with_definition: bool
) -> list[Location]:
    """Return where that of which the name is at `position` is used, in textual order."""
    found = _definition(analysis, position)
    if found is None:
        return []
    part, definition = found
    return [
        Location(uri, analysis.positions.range(use.place, part.start))
        for use in part.names.uses_of(definition)
        if with_definition or use.place != definition.place
    ]


def _definition(analysis: Analysis, position: int) -> tuple[Part, Definition] | None:
    part = analysis.part_at(position)
    use = part.names.use_at(position - part.start) if part is not None else None
    if part is None or use is None:
        return None
    definition = part.names.definition_of(use)
    return (part, definition) if definition is not None else None
