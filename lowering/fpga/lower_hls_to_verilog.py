"""`lower-hls-to-verilog`: writes a design in SystemVerilog to a file."""

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.braid_hls.design import only_design
from braid.lowering.fpga.rtl.design_module import design_modules
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.lowering.fpga.schedule.select import check_applied
from braid.support.errors import BraidError, SourceLocation


@dataclass(frozen=True)
class LowerHlsToVerilogPass(ModulePass):
    """Writes the modules of the only `braid_hls.design` to the file `output`.

    In: a design. Out: the same; the top module has its name, a clock `clk`, a reset `rst` that is
    active high, and AXI4-Stream ports: `s0_tdata`, `s0_tvalid`, `s0_tready` for the first input,
    `m0_…` for the first output. A beat holds all channels of a pixel, the first lowest.
    Raises BraidError for another number of designs, a schedule that was not applied, and where
    the file cannot be written, and UnsupportedError where CIRCT is not installed.

    ```mlir
    braid_hls.design "main"
    ```
    """

    name = "lower-hls-to-verilog"

    output: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower the design and write its files."""
        design = only_design(op)
        check_applied(design)
        text = system_verilog(design_modules(design))
        try:
            Path(self.output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise BraidError(
                f"cannot write the design: {error.strerror}", location=SourceLocation(self.output)
            ) from error
