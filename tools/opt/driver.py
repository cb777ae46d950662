"""Wires the parts of `braid-opt` together: options in, IR and diagnostics out."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
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
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.tools.opt.arguments import OptOptions
from braid.tools.opt.chunks import ChunkProcessor, PrintFormat
from braid.tools.opt.expectations import check_diagnostics
from braid.tools.opt.files import (
    SPLIT_MARKER,
    Chunk,
    read_input,
    split_chunks,
    write_texts,
)
from braid.tools.opt.reports import (
    remark_diagnostic,
    remarks_json,
    render_diagnostic,
    timing_report,
)
from braid.tools.terminal.outputs import check_outputs


@dataclass
class OptDriver:
    """One run of `braid-opt`."""

    options: OptOptions
    _sources: dict[str, list[str]] = field(default_factory=dict[str, list[str]], init=False)
    _remarks: list[Remark] = field(default_factory=list[Remark], init=False)

    def run(self) -> int:
        """Process the input; returns the exit status, 0 for success and 1 for any error."""
        timing = Timing()
        try:
            if self.options.emit == "irdl":
                write_texts([(self.options.output_file, export_irdl(Braid))])
                return 0
            check_outputs(self.options.output_file, self.options.remarks_json)
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
        return ChunkProcessor(
            context=make_context(allow_unregistered=options.allow_unregistered_dialect),
            file=file,
            passes=None if options.run_reproducer else parse_pipeline(options.pipeline),
            verify=options.verify,
            verify_each=options.verify_each,
            print_format=PrintFormat(
                options.print_generic, options.print_debuginfo, options.emit == "upstream"
            ),
            timing=timing,
            sources=self._sources,
            settings=options.settings,
            instrumentation=(_ir_printing(options),),
            reproducer_path=options.crash_reproducer,
        )

    def _process_chunks(self, processor: ChunkProcessor, text: str) -> tuple[bool, str | None]:
        """Whether all went well, and what is to be written."""
        chunks = split_chunks(text) if self.options.split_input_file else [Chunk(text, 0)]
        results = [self._process(processor, chunk) for chunk in chunks]
        ok = all(success for success, _ in results)
        outputs = [output for _, output in results if output is not None]
        # A file is written only as a whole; what goes to a terminal is worth seeing in part.
        if not outputs or not (ok or self.options.output_file is None):
            return ok, None
        return ok, f"{SPLIT_MARKER}\n".join(outputs)

    def _process(self, processor: ChunkProcessor, chunk: Chunk) -> tuple[bool, str | None]:
        """Whether the chunk was processed as it should be, and the resulting IR if there is."""
        emitted: list[Diagnostic] = []
        keep = emitted.append if self.options.verify_diagnostics else self._show
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
        if self.options.remarks:
            for remark in remarks:
                keep(remark_diagnostic(remark))
        if not self.options.verify_diagnostics:
            return output is not None, output
        problems = check_diagnostics(emitted, chunk.text, processor.file, chunk.line_offset)
        for problem in problems:
            self._show(problem)
        return not problems, output

    def _write(self, output: str | None, timing: Timing) -> None:
        """Write the IR and the reports: the files all or none."""
        texts: list[tuple[Path | None, str]] = []
        if output is not None:
            texts.append((self.options.output_file, output))
        if self.options.remarks_json is not None:
            texts.append((self.options.remarks_json, remarks_json(self._remarks)))
        write_texts(texts)
        if self.options.timing:
            print(timing_report(timing), file=sys.stderr)

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
        generic=options.print_generic,
        debuginfo=options.print_debuginfo,
    )
