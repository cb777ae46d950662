"""Wires the parts of `braid-opt` together: options in, IR and diagnostics out."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.dialects.braid import Braid
from braid.dialects.irdl_export import export_irdl
from braid.passes.infrastructure.context import make_context
from braid.passes.infrastructure.decision_checks import verifying_decisions
from braid.passes.infrastructure.instrumentation import Timing
from braid.passes.infrastructure.ir_printing import IRPrinting
from braid.passes.infrastructure.manager import PassCrashError
from braid.passes.infrastructure.options import PIPELINE_FILE
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.diagnostics import Diagnostic, Severity, handle_diagnostics
from braid.support.errors import BraidError
from braid.tools.opt.arguments import OptOptions
from braid.tools.opt.bytecode import to_bytecode
from braid.tools.opt.chunks import ChunkProcessor
from braid.tools.opt.expectations import check_diagnostics
from braid.tools.opt.files import (
    Chunk,
    read_input,
    split_chunks,
    write_texts,
)
from braid.tools.opt.irdl_files import register_irdl
from braid.tools.opt.printer import printed
from braid.tools.opt.reports import (
    remark_diagnostic,
    remarks_json,
    render_diagnostic,
    timing_json,
    timing_report,
)
from braid.tools.opt.statistics import PassStatistics
from braid.tools.terminal.outputs import check_outputs

_BEYOND: dict[str, frozenset[Severity]] = {
    "errors": frozenset({"warning", "remark"}),
    "warnings": frozenset({"remark"}),
    "remarks": frozenset(),
}
"""Diagnostics that each level of verbosity leaves out."""


@dataclass
class OptDriver:
    """One run of `braid-opt`."""

    options: OptOptions
    _sources: dict[str, list[str]] = field(default_factory=dict[str, list[str]], init=False)
    _remarks: list[Remark] = field(default_factory=list[Remark], init=False)
    _statistics: PassStatistics = field(default_factory=PassStatistics, init=False)

    def run(self) -> int:
        """Process the input; return the exit status, 0 for success and 1 for any error."""
        timing = Timing()
        try:
            if self.options.emit == "irdl":
                write_texts([(self.options.output_file, export_irdl(Braid))])
                return 0
            outputs = (self.options.remarks_json, self.options.reproducer)
            check_outputs(self.options.output_file, *outputs)
            file, text = read_input(self.options.input_file)
            self._sources[file] = text.splitlines()
            processor = self._processor(file, timing)
            ok, output = self._process_chunks(processor, text)
            self._write(output, timing)
        except BraidError as error:
            self._show(Diagnostic.from_error(error))
            self._show_traceback()
            return 1
        return 0 if ok else 1

    def _processor(self, file: str, timing: Timing) -> ChunkProcessor:
        options = self.options
        self._sources[PIPELINE_FILE] = options.pipeline.split("\n")
        context = make_context(allow_unregistered=options.allow_unregistered_dialect)
        if options.irdl_file is not None:
            register_irdl(context, options.irdl_file)
        statistics = (self._statistics,) if options.statistics else ()
        return ChunkProcessor(
            context=context,
            file=file,
            passes=None if options.run_reproducer else parse_pipeline(options.pipeline),
            options=options,
            timing=timing,
            sources=self._sources,
            instrumentation=(_ir_printing(options), *statistics),
        )

    def _process_chunks(self, processor: ChunkProcessor, text: str) -> tuple[bool, str | None]:
        """Return whether all went well, and the output."""
        marker = self.options.split_marker
        chunks = split_chunks(text, marker) if marker else [Chunk(text, 0)]
        results = [self._process(processor, chunk) for chunk in chunks]
        ok = all(success for success, _ in results)
        outputs = [output for _, output in results if output is not None]
        # A file is written only as a whole; output to a terminal is useful in parts.
        if not outputs or not (ok or self.options.output_file is None):
            return ok, None
        return ok, f"{self.options.output_split_marker}\n".join(outputs)

    def _process(self, processor: ChunkProcessor, chunk: Chunk) -> tuple[bool, str | None]:
        """Return whether the chunk was processed as it should be, and the resulting IR, if any."""
        emitted: list[Diagnostic] = []

        def keep(diagnostic: Diagnostic) -> None:
            if (wanted := self._wanted(processor, diagnostic)) is None:
                return
            if self.options.verify_diagnostics:
                emitted.append(wanted)
            else:
                self._show(wanted)

        output: str | None = None
        with (
            handle_diagnostics(keep),
            collect_remarks() as remarks,
            verifying_decisions(self.options.verify_decisions),
        ):
            try:
                output = processor.process(chunk)
            except BraidError as error:
                keep(Diagnostic.from_error(error))
                self._show_traceback()
            except PassCrashError as crash:
                self._show_traceback()
                keep(processor.report_crash(chunk, crash))
        self._remarks += remarks
        for remark in remarks:
            if self.options.remarks or remark.pass_name in self.options.debug_only:
                keep(remark_diagnostic(remark))
        if not self.options.verify_diagnostics:
            return output is not None, output
        problems = check_diagnostics(
            emitted,
            chunk.text,
            processor.file,
            chunk.line_offset,
            only_expected=self.options.verify_diagnostics == "only-expected",
        )
        for problem in problems:
            self._show(problem)
        return not problems, output

    def _wanted(self, processor: ChunkProcessor, diagnostic: Diagnostic) -> Diagnostic | None:
        """Return the diagnostic with the notes that flags ask for, None where it is not wanted."""
        options = self.options
        if diagnostic.severity in _BEYOND[options.verbosity]:
            return None
        if options.print_op:
            note = processor.current_operation(diagnostic.location)
            notes = (*diagnostic.notes, note) if note is not None else diagnostic.notes
            diagnostic = replace(diagnostic, notes=notes)
        return replace(diagnostic, notes=()) if options.no_notes else diagnostic

    def _write(self, output: str | None, timing: Timing) -> None:
        """Write the IR and the reports: the files all or none."""
        texts: list[tuple[Path | None, str | bytes]] = []
        if output is not None and self.options.emit_bytecode:
            data = to_bytecode(output, self.options.bytecode_version)
            texts.append((self.options.output_file, data))
        elif output is not None:
            texts.append((self.options.output_file, output))
        if self.options.remarks_json is not None:
            texts.append((self.options.remarks_json, remarks_json(self._remarks)))
        write_texts(texts)
        if self.options.statistics:
            merged = self.options.statistics_display == "list"
            print(self._statistics.report(merged=merged), file=sys.stderr)
        if self.options.timing:
            report = timing_json if self.options.timing_format == "json" else timing_report
            longest_first = self.options.timing_display == "list"
            print(report(timing, longest_first=longest_first), file=sys.stderr)

    def _show(self, diagnostic: Diagnostic) -> None:
        print(render_diagnostic(diagnostic, self._sources), file=sys.stderr)

    def _show_traceback(self) -> None:
        if self.options.debug:
            traceback.print_exc()


def _ir_printing(options: OptOptions) -> IRPrinting:
    def among(names: tuple[str, ...], everything: bool) -> Callable[[ModulePass], bool]:
        return lambda pass_: everything or pass_.name in names

    chosen = (options.print_before, options.print_after, options.print_before_all)
    after_all = options.print_after_all or options.print_after_change
    only_tree = options.print_tree_dir is not None and not any(chosen) and not after_all
    return IRPrinting(
        before=among(options.print_before, options.print_before_all),
        after=among(options.print_after, after_all or only_tree),
        on_failure=options.print_after_failure or options.print_after_all,
        only_changes=options.print_after_change,
        tree=options.print_tree_dir,
        text=partial(printed, print_format=replace(options.print_format, upstream=False)),
    )
