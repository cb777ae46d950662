"""Process one part of the input of `braid-opt`: parse, verify, run, print."""

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.dialects.braid.settings import say_settings, write_settings
from braid.dialects.upstream_form import to_upstream_form
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.instrumentation import Instrumentation, Timing
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.passes.infrastructure.options import PIPELINE_FILE
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.infrastructure.reproducer import reproducer_text, write_reproducer
from braid.support.diagnostics import Diagnostic
from braid.support.errors import BraidError, Note, SourceLocation
from braid.tools.opt.arguments import OptOptions
from braid.tools.opt.files import Chunk, stored_pipeline, write_texts
from braid.tools.opt.printer import FormattedPrinter, PrintFormat, printed
from braid.tools.opt.reports import pipeline_report
from braid.tools.opt.round_trip import verify_round_trip


@dataclass
class ChunkProcessor:
    """Runs a pipeline on chunks of one file; `passes` is None to use those of a reproducer.

    The text of the latter goes to `sources`, by the name that diagnostics have for it.
    """

    context: Context
    file: str
    passes: tuple[ModulePass, ...] | None
    options: OptOptions
    timing: Timing
    sources: dict[str, list[str]]
    instrumentation: tuple[Instrumentation, ...] = ()
    module: ModuleOp | None = field(default=None, init=False)
    """The module that the chunk has become so far."""

    def process(self, chunk: Chunk) -> str:
        """Return the resulting IR as text.

        Raises `BraidError` for what is wrong with the input, and `PassCrashError`.
        """
        options = self.options
        self.module = None
        with self.timing.phase("(parse)"):
            module, passes, is_implicit = self._parse(chunk)
            self.module = module
            gc.freeze()  # The IR lives to the end; the collector need not look at it.
        if options.verify and options.verify_input:
            with self.timing.phase("(verify)"):
                verify_module(module)
        printed_op = _outermost(module, passes) if is_implicit and self._is_bare else module
        if options.verify_roundtrip:
            verify_round_trip(self.context, module, self.file)
        if options.dump_pass_pipeline:
            print(pipeline_report(passes), file=sys.stderr)
        if options.reproducer is not None:
            text = self._print(module, PrintFormat(generic=True, debuginfo=True))
            write_texts([(options.reproducer, reproducer_text(text, passes))])
        run_pipeline(
            self.context,
            module,
            passes,
            instrumentation=(self.timing, *self.instrumentation),
            verify=options.verify and options.verify_each,
        )
        with self.timing.phase("(print)"):
            if options.print_format.upstream:
                to_upstream_form(module)
            return self._print(printed_op, options.print_format)

    @property
    def _is_bare(self) -> bool:
        """True if no module is put around the ops of the input."""
        return self.options.no_implicit_module

    def _parse(self, chunk: Chunk) -> tuple[ModuleOp, tuple[ModulePass, ...], bool]:
        """Return the module, the passes to run, and whether the module is not in the text."""
        parsed = parse_mlir(self.context, chunk.text, self.file, line_offset=chunk.line_offset)
        write_settings(parsed.module, self.options.settings)
        if self.passes is not None:
            return parsed.module, self.passes, parsed.is_implicit
        pipeline = stored_pipeline(parsed, self.file)
        self.sources[PIPELINE_FILE] = pipeline.split("\n")
        return parsed.module, parse_pipeline(pipeline), parsed.is_implicit

    def _print(self, op: Operation, print_format: PrintFormat) -> str:
        printer = FormattedPrinter(print_format)
        printer.print_op(op)
        printer.print_metadata(self.context.loaded_dialects)
        return printer.text + "\n"

    def current_operation(self, location: SourceLocation | None) -> Note | None:
        """Return the note that shows the op of the module at a location, None if there is none."""
        if location is None or self.module is None:
            return None
        for op in self.module.walk():
            if source_location(op) == location:
                try:
                    text = printed(op, PrintFormat(generic=True))
                except Exception:  # the error may keep it from being printed
                    text = f'"{op.name}", which cannot be printed'
                return Note(f"see current operation: {text}", location)
        return None

    def report_crash(self, chunk: Chunk, crash: PassCrashError) -> Diagnostic:
        """Return the diagnostic for `crash`, after its reproducer was written or could not be.

        The IR before the failing pass is made again from the input, so that runs that do not
        crash need not keep it.
        """
        cause = crash.__cause__
        invalid = cause if isinstance(cause, InvalidIRError) else None
        notes = invalid.notes if invalid else ()
        ir = self._ir_before(chunk, crash)
        try:
            path = write_reproducer(self.options.crash_reproducer, ir, crash)
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
            module, passes, _ = self._parse(chunk)
            run_pipeline(self.context, module, passes[: crash.index], verify=False)
        except (BraidError, PassCrashError):
            # Some pass is not deterministic; the input is then the best there is.
            module, _, _ = self._parse(chunk)
        say_settings(module)
        return self._print(module, PrintFormat(generic=True, debuginfo=True))


def _outermost(module: ModuleOp, passes: Sequence[ModulePass]) -> Operation:
    """Return the only op of a text without a module.

    Raises:
        BraidError: there are several, or passes, which run on modules.

    """
    ops = list(module.ops)
    if len(ops) != 1:
        raise BraidError(
            f"the input has {len(ops)} outermost ops, and --no-implicit-module takes one",
            location=source_location(ops[1]) if ops else None,
        )
    if passes:
        raise BraidError(
            f"pass '{passes[0].name}' runs on a module, and the outermost op is '{ops[0].name}'",
            location=source_location(ops[0]),
            hint="without --no-implicit-module, a module is put around it",
        )
    return ops[0]
