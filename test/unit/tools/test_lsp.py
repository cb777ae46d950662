"""`braid-lsp` answers a real client over standard input and output."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.client import LanguageClient

from braid import __version__

URI = "file:///model.mlir"
SERVER = (sys.executable, "-m", "braid.tools.braid_lsp")
TEXT = """// RUN: braid-opt %s -p select-layouts,canonicalise
func.func @f(%a: tensor<1x16x8x8xf32, #braid.layout<"acdb">>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.add %b, %b {braid.device = "cpu:0", braid.seconds = 2.5e-6 : f64, braid.name = "sum"}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.ad %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.add %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @main(%x: tensor<1x16x8x8xf32, #braid.layout<"acdb">>, %y: tensor<4xf32>) {
  %z = func.call @f(%x, %y)
      : (tensor<1x16x8x8xf32, #braid.layout<"acdb">>, tensor<4xf32>) -> tensor<4xf32>
  return
}
"""


@dataclass
class Session:
    """A client with an open document, whose changes are sent as whole texts."""

    client: LanguageClient
    text: str = ""
    version: int = 0
    published: "asyncio.Queue[types.PublishDiagnosticsParams]" = field(
        default_factory=lambda: asyncio.Queue[types.PublishDiagnosticsParams]()
    )

    def open(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        document = types.TextDocumentItem(URI, "mlir", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        document = types.VersionedTextDocumentIdentifier(self.version, URI)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def diagnostics(self) -> list[tuple[str, str]]:
        """Return the text and the message of each diagnostic of the newest version."""
        published = await self.published.get()
        while published.version != self.version:
            published = await self.published.get()
        return [(self.at(each.range), each.message) for each in published.diagnostics]

    def place(self, text: str, offset: int = 1) -> types.Position:
        """Return the position `offset` characters after the first occurrence of `text`."""
        start = self.text.index(text) + offset
        line = self.text.count("\n", 0, start)
        return types.Position(line, start - self.text.rfind("\n", 0, start) - 1)

    def at(self, place: types.Range) -> str:
        lines = self.text.split("\n")
        assert place.start.line == place.end.line
        return lines[place.start.line][place.start.character : place.end.character]

    def params(self, position: types.Position) -> dict[str, Any]:
        return {"text_document": types.TextDocumentIdentifier(URI), "position": position}

    async def hover(self, position: types.Position) -> str:
        found = await self.client.text_document_hover_async(
            types.HoverParams(**self.params(position))
        )
        assert found is not None and isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def completions(self, position: types.Position) -> list[str]:
        found = await self.client.text_document_completion_async(
            types.CompletionParams(**self.params(position))
        )
        assert isinstance(found, types.CompletionList)
        return [item.label for item in found.items]


def talk(conversation: Callable[[Session], Awaitable[None]]) -> None:
    """Start a server, hold `conversation` with it, and end it as editors do."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        session = Session(client)

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            session.published.put_nowait(params)

        await client.start_io(*SERVER)
        capabilities = types.ClientCapabilities()
        await client.initialize_async(types.InitializeParams(capabilities=capabilities))
        client.initialized(types.InitializedParams())
        await conversation(session)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_diagnostics() -> None:
    async def conversation(session: Session) -> None:
        session.open(TEXT)
        assert await session.diagnostics() == [
            ("braid.ad", "op 'braid.ad' is not registered\nhint: did you mean 'braid.pad'?"),
            (
                "canonicalise",
                "unknown pass 'canonicalise'\n"
                "hint: did you mean 'canonicalize', 'canonicalize-dmp'?",
            ),
        ]
        session.change(TEXT.replace("braid.ad ", "braid.add ").replace("canonicalise", "cse"))
        assert await session.diagnostics() == []
        wrong = session.text.replace("return %2 : tensor<4xf32>", "return %b, %b : f32, f32")
        session.change(wrong)
        assert [each[0] for each in await session.diagnostics()] == ["%b"]
        # What the verifier finds is shown at the op's name, however wide characters are.
        session.change('"𝔸"'.join(["// ", "\n"]) + 'builtin.module { "𝔸.é"() : () -> () }\n')
        assert [each[1] for each in await session.diagnostics()] == ["op '𝔸.é' is not registered"]

    talk(conversation)


def test_verifier_speaks_of_every_wrong_op() -> None:
    async def conversation(session: Session) -> None:
        op = "  braid.reshape %a : (tensor<4xf32>) -> tensor<5xf32>\n"
        session.open(f"func.func @f(%a: tensor<4xf32>) {{\n{op}{op}  return\n}}\n")
        found = await session.diagnostics()
        assert [each[0] for each in found] == ["braid.reshape"] * 2
        session.change("func.func @f() {\n  %0 = braid.neg %1 : (f32) -> f32\n}\n// -----\nx\n")
        assert len(await session.diagnostics()) >= 2

    talk(conversation)


def test_navigation_and_hover() -> None:
    async def conversation(session: Session) -> None:
        session.open(TEXT)
        client = session.client
        for used, defined in [("%0 :", "%0 ="), ("@f(%x", "@f(%a"), ("%y)", "%y:")]:
            params = types.DefinitionParams(**session.params(session.place(used)))
            found = await client.text_document_definition_async(params)
            assert isinstance(found, types.Location)
            line = session.place(defined).line
            assert (session.at(found.range), found.range.start.line) == (defined[:2], line)
        context = types.ReferenceContext(include_declaration=False)
        params = types.ReferenceParams(context, **session.params(session.place("%0 =")))
        found = await client.text_document_references_async(params)
        assert [session.at(each.range) for each in found or ()] == ["%0", "%0"]
        document = types.TextDocumentIdentifier(URI)
        symbols = await client.text_document_document_symbol_async(
            types.DocumentSymbolParams(document)
        )
        assert [each.name for each in symbols or ()] == ["@f", "@main"]

        argument = await session.hover(session.place("%a:"))
        assert "block argument #0 of `func.func`" in argument
        assert "layout `acdb`, 4 KiB (4,096 bytes)" in argument
        value = await session.hover(session.place("%0 :"))
        assert 'result of `braid.add` "sum"' in value
        assert "`braid.seconds` = 2.5 µs: On an op that was profiled: seconds of one run" in value
        assert '`braid.device` = `"cpu:0"`: On an op or a function: the device' in value
        assert "Elementwise: a + b" in await session.hover(session.place("braid.add"))
        assert "tensor<4xf32>" in await session.hover(session.place("@f(%x"))
        assert "cannot be parsed" in await session.hover(session.place("%1, %0"))
        assert "trip-count=<float>" in await session.hover(session.place("select-layouts"))

    talk(conversation)


GROUP = """func.func @main(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %0 = braid.fused(%x) {braid.layouts = {operands = [#braid.layout<"ab">],
      results = [#braid.layout<"ab">]}} : (tensor<64x32xf32>) -> tensor<64x32xf32> {
  ^bb0(%a: tensor<64x32xf32>):
    %b = braid.tanh %a : (tensor<64x32xf32>) -> tensor<64x32xf32>
    braid.yield %b : tensor<64x32xf32>
  }
  return %0 : tensor<64x32xf32>
}
"""


def test_hover_says_what_a_group_costs_and_why() -> None:
    async def conversation(session: Session) -> None:
        session.open(GROUP)
        assert await session.diagnostics() == []
        for name in ("braid.fused", "%0 :"):
            said = await session.hover(session.place(name))
            assert "cost of a run: " in said and " by `" in said
            assert "because: " in said

    talk(conversation)


def test_edits() -> None:
    async def conversation(session: Session) -> None:
        session.open(TEXT)
        client = session.client
        document = types.TextDocumentIdentifier(URI)
        (published,) = [await session.published.get()]
        context = types.CodeActionContext(diagnostics=published.diagnostics)
        for diagnostic, proposed in zip(
            published.diagnostics, ["pad", "canonicalize"], strict=True
        ):
            params = types.CodeActionParams(document, diagnostic.range, context)
            action = (await client.text_document_code_action_async(params) or [None])[0]
            assert isinstance(action, types.CodeAction) and action.edit is not None
            (edit,) = (action.edit.changes or {})[URI]
            assert edit.range == diagnostic.range and edit.new_text.endswith(proposed)
        rename = session.params(session.place("%0 :"))
        edits = await client.text_document_rename_async(
            types.RenameParams(new_name="sum", **rename)
        )
        assert edits is not None
        assert [each.new_text for each in (edits.changes or {})[URI]] == ["%sum"] * 3
        for name, message in [("%b", "is another value"), ("a b", "is no name")]:
            with pytest.raises(JsonRpcInvalidParams, match=message):
                await client.text_document_rename_async(types.RenameParams(new_name=name, **rename))
        found = await client.text_document_document_highlight_async(
            types.DocumentHighlightParams(**rename)
        )
        assert [each.kind for each in found or ()] == [
            types.DocumentHighlightKind.Write,
            *[types.DocumentHighlightKind.Read] * 2,
        ]

    talk(conversation)


def test_completion() -> None:
    async def conversation(session: Session) -> None:
        session.open(TEXT)
        line = "%1 = braid.ad %0, %b"
        ops = await session.completions(session.place(line, 6))
        assert "braid" in ops and "braid.conv" in ops and "tosa.conv2d" not in ops
        session.change(TEXT.replace(line, "%1 = braid.red"))
        names = await session.completions(session.place("braid.red", 9))
        assert "braid.reduce" in names and all(each.startswith("braid.red") for each in names)
        session.change(TEXT.replace(line, "%1 = braid.add %"))
        names = await session.completions(session.place("%1 = braid.add %", 16))
        assert set(names) == {"%a", "%b", "%0", "%1", "%2"}
        session.change(TEXT.replace("select-layouts,", "select-layouts{ch"))
        assert await session.completions(session.place("{ch", 3)) == ["change-signature"]
        session.change(TEXT.replace("select-layouts,", "select-layouts{change-signature="))
        assert await session.completions(session.place("ture=", 5)) == ["true", "false"]
        session.change(TEXT.replace("layouts,canonicalise", "layouts,apply-"))
        names = await session.completions(session.place(",apply-", 7))
        assert {"apply-layouts", "apply-fusion"} <= set(names)
        session.change(TEXT.replace("-p select-layouts,canonicalise", "--split-input-"))
        flag = session.place("--split-input-", 14)
        assert await session.completions(flag) == ["--split-input-file"]

    talk(conversation)


def test_typing_fast_gets_one_answer() -> None:
    async def conversation(session: Session) -> None:
        session.open("")
        for end in range(1, len(TEXT), 7):
            session.change(TEXT[:end])
        session.change('garbage \x00 %%% {{{ ((( "\n' * 50)
        assert await session.diagnostics()
        session.change(TEXT.replace("braid.ad ", "braid.add ").replace(",canonicalise", ""))
        assert await session.diagnostics() == []

    talk(conversation)


def test_command_line() -> None:
    for flag, said in [("--help", "language server"), ("--version", __version__)]:
        result = subprocess.run([*SERVER, flag], capture_output=True, text=True, check=True)
        assert said in result.stdout


def test_without_pygls(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('no pygls', name='pygls')\n")
    result = subprocess.run(
        SERVER, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path)}
    )
    assert result.returncode == 1
    assert "error: braid-lsp needs pygls, which is not installed" in result.stderr
    assert "hint: pip install 'braid-compiler[lsp]'" in result.stderr
