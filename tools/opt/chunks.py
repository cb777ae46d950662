"""What `braid-opt` does with one part of its input: parse, verify, run, print."""

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.dialects.braid.settings import say_settings, write_settings
from braid.dialects.printing import CachingPrinter
from braid.dialects.upstream_form import to_upstream_form
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.instrumentation import Instrumentation, Timing
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.passes.infrastructure.options import PIPELINE_FILE
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.infrastructure.reproducer import write_reproducer
from braid.support.diagnostics import Diagnostic
from braid.support.errors import BraidError, Note
from braid.tools.opt.files import Chunk, stored_pipeline


@dataclass(frozen=True)
class PrintFormat:
    """How the resulting IR is printed."""

    generic: bool = False
    debuginfo: bool = False
    upstream: bool = False
    """In the form that upstream tools can check with braid's IRDL."""


@dataclass(frozen=True)
class ChunkProcessor:
    """Runs a pipeline on chunks of one file; `passes` is None for that of a reproducer.

    The text of the latter goes to `sources`, by the name that diagnostics have for it. `settings`
    are written on the module before any pass runs.
    """

    context: Context
    file: str
    passes: tuple[ModulePass, ...] | None
    verify: bool
    verify_each: bool
    print_format: PrintFormat
    timing: Timing
    sources: dict[str, list[str]]
    settings: Mapping[str, str]
    instrumentation: tuple[Instrumentation, ...] = ()
    reproducer_path: Path | None = field(default=None)

    def process(self, chunk: Chunk) -> str:
        """The resulting IR as text.

        Raises `BraidError` for what is wrong with the input, and `PassCrashError`.
        """
        with self.timing.phase("(parse)"):
            module, passes = self._parse(chunk)
            gc.freeze()  # The IR lives to the end; the collector need not look at it.
        if self.verify:
            with self.timing.phase("(verify)"):
                verify_module(module)
        run_pipeline(
            self.context,
            module,
            passes,
            instrumentation=(self.timing, *self.instrumentation),
            verify=self.verify and self.verify_each,
        )
        with self.timing.phase("(print)"):
            return self._print(module, self.print_format)

    def _parse(self, chunk: Chunk) -> tuple[ModuleOp, tuple[ModulePass, ...]]:
        parsed = parse_mlir(self.context, chunk.text, self.file, line_offset=chunk.line_offset)
        write_settings(parsed.module, self.settings)
        if self.passes is not None:
            return parsed.module, self.passes
        pipeline = stored_pipeline(parsed, self.file)
        self.sources[PIPELINE_FILE] = pipeline.split("\n")
        return parsed.module, parse_pipeline(pipeline)

    def _print(self, module: ModuleOp, print_format: PrintFormat) -> str:
        if print_format.upstream:
            to_upstream_form(module)
        generic = print_format.generic or print_format.upstream
        printer = CachingPrinter(generic=generic, debuginfo=print_format.debuginfo)
        printer.print_op(module)
        printer.print_metadata(self.context.loaded_dialects)
        return printer.text + "\n"

    def report_crash(self, chunk: Chunk, crash: PassCrashError) -> Diagnostic:
        """The diagnostic for `crash`, after its reproducer was written or could not be.

        The IR before the failing pass is made again from the input, so that runs that do not
        crash need not keep it.
        """
        cause = crash.__cause__
        invalid = cause if isinstance(cause, InvalidIRError) else None
        notes = invalid.notes if invalid else ()
        ir = self._ir_before(chunk, crash)
        try:
            path = write_reproducer(self.reproducer_path, ir, crash)
            checked = " --verify-decisions" if crash.is_wrong_claim else ""
            way_out = f"'braid-opt --run-reproducer{checked} {path} --debug' shows it again"
        except BraidError as failure:
            notes = (*notes, Note(failure.message))
            way_out = "--debug shows where"
        return Diagnostic(
            "error",
            str(crash),
            location=invalid.location if invalid else None,
            notes=notes,
            hint=f"this is a bug of the pass; {way_out}",
        )

    def _ir_before(self, chunk: Chunk, crash: PassCrashError) -> str:
        try:
            module, passes = self._parse(chunk)
            run_pipeline(self.context, module, passes[: crash.index], verify=False)
        except (BraidError, PassCrashError):
            # Some pass is not deterministic; the input is then the best there is.
            module, _ = self._parse(chunk)
        say_settings(module)
        return self._print(module, PrintFormat(generic=True, debuginfo=True))
