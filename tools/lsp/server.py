"""The language server: takes requests of an editor, and asks the features for answers."""

import os
import sys
from dataclasses import replace
from functools import cache
from typing import Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from xdsl.context import Context

from braid import __version__
from braid.frontends.mlir.source_map import Stop, StoppedError, TextRange
from braid.passes.infrastructure.context import make_context
from braid.support.errors import BraidError
from braid.tools.lsp.analysis import Analysis, Problem, analyze, plain_text
from braid.tools.lsp.completion import TRIGGERS, completions_at
from braid.tools.lsp.diagnostics import diagnostics_of
from braid.tools.lsp.documents import Documents
from braid.tools.lsp.fixes import fixes_in
from braid.tools.lsp.hover import hover_at
from braid.tools.lsp.navigation import (
    definition_at,
    highlights_at,
    references_at,
    renamed_at,
)
from braid.tools.lsp.pipelines import pass_at, pipeline_problems
from braid.tools.lsp.positions import TextPositions
from braid.tools.lsp.symbols import symbols_of


class _At(Protocol):
    """A request about a place in a document."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


@cache
def _context(allow_unregistered: bool) -> Context:
    return make_context(allow_unregistered=allow_unregistered)


class BraidServer(LanguageServer):
    """The state of the server: the open documents, and the contexts that they are read in."""

    def __init__(self) -> None:
        """Begin without documents."""
        super().__init__("braid-lsp", __version__)  # pyright: ignore[reportUnknownMemberType]
        self.documents = Documents(self._analyze, self._publish)
        self.context = make_context()
        """For completion; the worker has another instance."""

    def _analyze(self, text: str, uri: str, stop: Stop) -> Analysis:
        """Return the analysis of any text, on the worker's thread."""
        encoding = self.workspace.position_encoding or types.PositionEncodingKind.Utf16
        try:
            analysis = analyze(text, uri, _context, encoding, stop)
            problems = (*analysis.problems, *pipeline_problems(analysis.text))
            return replace(analysis, problems=problems)
        except StoppedError:
            raise
        except Exception as error:
            plain = plain_text(text)
            message = f"internal error: {type(error).__name__}: {error}; this is a bug of braid-lsp"
            problem = Problem(TextRange(0, plain.find("\n") % (len(plain) + 1)), message)
            return Analysis(plain, TextPositions(plain, encoding), (), (problem,))

    def _publish(self, uri: str, version: int, analysis: Analysis) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics_of(analysis, uri), version)
        )

    def take(self, uri: str) -> None:
        """Analyze a document of the workspace anew."""
        document = self.workspace.get_text_document(uri)
        self.documents.update(uri, document.version or 0, document.source)

    async def at(self, params: _At) -> tuple[Analysis, int] | None:
        """Return the analysis of a document and the place in its text that a request is about."""
        analysis = await self.documents.analysis(params.text_document.uri)
        if analysis is None:
            return None
        return analysis, analysis.positions.offset(params.position)


def make_server() -> BraidServer:
    """Return a server with all features."""
    server = BraidServer()
    _add_synchronization(server)
    _add_features(server)
    _add_edits(server)
    return server


def _add_synchronization(server: BraidServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.documents.close(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.SHUTDOWN)
    def ended(_: None) -> None:
        server.documents.shutdown()

    _ = opened, changed, closed, ended  # kept by the server


def _add_features(server: BraidServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        if (place := await server.at(params)) is None:
            return None
        analysis, position = place
        start, found = 0, pass_at(analysis.text, position)
        if found is None and (part := analysis.part_at(position)) is not None:
            start = part.start
            found = await server.documents.in_background(hover_at, part, position - start)
        if found is None:
            return None
        contents = types.MarkupContent(types.MarkupKind.Markdown, found[1])
        return types.Hover(contents, analysis.positions.range(found[0], start))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        place = await server.at(params)
        return definition_at(place[0], params.text_document.uri, place[1]) if place else None

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location]:
        if (place := await server.at(params)) is None:
            return []
        wanted = params.context.include_declaration
        return references_at(place[0], params.text_document.uri, place[1], with_definition=wanted)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        analysis = await server.documents.analysis(params.text_document.uri)
        return symbols_of(analysis) if analysis is not None else []

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS)
    )
    async def completion(params: types.CompletionParams) -> types.CompletionList:
        place = await server.at(params)
        items = completions_at(*place, server.context) if place is not None else []
        return types.CompletionList(is_incomplete=False, items=items)

    _ = hover, definition, references, symbols, completion  # kept by the server


def _add_edits(server: BraidServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        place = await server.at(params)
        return highlights_at(*place) if place is not None else []

    @server.feature(types.TEXT_DOCUMENT_RENAME)
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        if (place := await server.at(params)) is None:
            return None
        try:
            return renamed_at(place[0], params.text_document.uri, place[1], params.new_name)
        except BraidError as error:
            raise JsonRpcInvalidParams(error.message) from error

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    async def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        analysis = await server.documents.analysis(uri)
        return fixes_in(analysis, uri, params.range) if analysis is not None else []

    _ = highlight, rename, fixes  # kept by the server


def serve() -> int:
    """Answer an editor on standard input and output until it ends the session."""
    # Accidental prints must not come between the messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    make_server().start_io(sys.stdin.buffer, output)
    return 0
