"""Go to definition, find references, and rename: values, symbols, blocks and aliases."""

import re

from lsprotocol.types import (
    DocumentHighlight,
    DocumentHighlightKind,
    Location,
    TextEdit,
    WorkspaceEdit,
)

from braid.frontends.mlir.source_map import Definition
from braid.support.errors import BraidError
from braid.tools.lsp.analysis import Analysis, Part

_NAME = re.compile(r"[%@^#!](?:[0-9]+|[A-Za-z$._-][\w$.-]*)", re.ASCII)


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
    """Return the uses of the value whose name is at `position`, in textual order."""
    found = _definition(analysis, position)
    if found is None:
        return []
    part, definition = found
    return [
        Location(uri, analysis.positions.range(use.place, part.start))
        for use in part.names.uses_of(definition)
        if with_definition or use.place != definition.place
    ]


def highlights_at(analysis: Analysis, position: int) -> list[DocumentHighlight]:
    """Return the definition and uses of the value whose name is at `position`."""
    found = _definition(analysis, position)
    if found is None:
        return []
    part, definition = found
    return [
        DocumentHighlight(
            analysis.positions.range(use.place, part.start),
            DocumentHighlightKind.Write
            if use.place == definition.place
            else DocumentHighlightKind.Read,
        )
        for use in part.names.uses_of(definition)
    ]


def renamed_at(analysis: Analysis, uri: str, position: int, name: str) -> WorkspaceEdit | None:
    """Return the edit that gives a new name, with its sigil or without, to what is at `position`.

    None where no name is, or nothing defines it.

    Raises:
        BraidError: it is no name, or another definition with this name is visible here.

    """
    found = _definition(analysis, position)
    if found is None:
        return None
    part, definition = found
    sigil = definition.name[0]
    new = name if name.startswith(sigil) else sigil + name
    if _NAME.fullmatch(new) is None:
        raise BraidError(f"'{new}' is no name", hint="names have letters, digits and any of _$.-")
    uses = list(part.names.uses_of(definition))
    if definition.place not in [use.place for use in uses]:
        raise BraidError(f"'{definition.name}' is defined by an attribute: edit it there")
    if new != definition.name and any(
        new in part.names.visible_at(use.place.start, sigil) for use in uses
    ):
        raise BraidError(f"'{new}' is another value, symbol or block here")
    edits = [TextEdit(analysis.positions.range(use.place, part.start), new) for use in uses]
    return WorkspaceEdit(changes={uri: edits})


def _definition(analysis: Analysis, position: int) -> tuple[Part, Definition] | None:
    part = analysis.part_at(position)
    use = part.names.use_at(position - part.start) if part is not None else None
    if part is None or use is None:
        return None
    definition = part.names.definition_of(use)
    return (part, definition) if definition is not None else None
