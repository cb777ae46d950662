"""`lower-hls-to-cpp`: writes a design as a project for Vitis HLS."""

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.braid_hls.design import only_design
from braid.lowering.fpga.cpp.project import project_texts, write_texts
from braid.lowering.fpga.schedule.select import check_applied
from braid.support.errors import BraidError, SourceLocation


@dataclass(frozen=True)
class LowerHlsToCppPass(ModulePass):
    """Writes the only `braid_hls.design` as C++ to the folder `output`.

    In: a design. Out: the same; the folder has `NAME.cpp` with the top function NAME (`top` for
    `main`), a driver, `hls.tcl` for `part` at a period of `clock` ns, a Makefile, and headers with
    which it runs without Vitis. Each call is one image; ports are AXI4-Stream.
    Raises BraidError for another number of designs, a schedule that was not applied, a design
    that breaks a rule of synthesis, and where the folder cannot be written, and UnsupportedError
    for numbers of more than 64 bits.

    ```mlir
    braid_hls.design "main"
    ```
    """

    name = "lower-hls-to-cpp"

    output: str
    part: str = "xcu280-fsvh2892-2L-e"
    clock: float = 3.33

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower the design, check it, and write its files."""
        design = only_design(op)
        check_applied(design)
        try:
            write_texts(project_texts(design, self.part, self.clock), Path(self.output))
        except OSError as error:
            raise BraidError(
                f"cannot write the design: {error.strerror}", location=SourceLocation(self.output)
            ) from error
