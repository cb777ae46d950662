"""`lower-floats-to-cpp`: a function in f32 becomes a project of HLS C++."""

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid.settings import settings_of
from braid.lowering.fpga.convert.design_of import known_values
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.design_text import top_name_of
from braid.lowering.fpga.floats.nodes import graph_of
from braid.lowering.fpga.floats.project import write_float_project
from braid.lowering.fpga.floats.select import Selected, select_orders
from braid.lowering.fpga.operators import vitis_operators
from braid.lowering.fpga.part import part_of
from braid.support.errors import BraidError, SourceLocation


@dataclass(frozen=True)
class LowerFloatsToCppPass(ModulePass):
    """Writes the function `function`, in f32, as C++ for Vitis HLS to the folder `output`.

    In: structured ops on f32 of known shapes. Out: the same; the folder has the files that
    `lower-hls-to-cpp` writes. Arguments, parameters after them, and results are arrays. Each op is
    a loop nest, and elementwise nests are merged. The order of loops, their unrolling, and
    intervals are those for which the estimator finds the fewest cycles within `dsp` DSPs, by
    default those of the target's FPGA. Nests that traverse a tensor in the same order stream it;
    others pass it on as a whole. Cycles assume that sums become trees of adders, as Vitis builds
    them unless the numerics are strict. A remark says cycles, DSPs, and a bound. There is no RTL of
    functions in f32. Raises UnsupportedError naming what such nests do not have, and BraidError
    where no design has so few DSPs, and where the folder cannot be written.

    ```mlir
    func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32>
    ```
    """

    name = "lower-floats-to-cpp"

    output: str
    function: str = "main"
    dsp: int | None = None
    target: str | None = None
    part: str = "xcu280-fsvh2892-2L-e"
    clock: float = 3.33

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose orders, check the design, and write its files."""
        function = function_named(op, self.function)
        graph = graph_of(function, known_values(function, {}, needs_all=False))
        name = top_name_of(function.sym_name.data)
        chosen = select_orders(graph, name, vitis_operators(), self._dsps(op))
        reorders = not settings_of(op).is_strict
        _say(function, chosen, reorders=reorders)
        try:
            write_float_project(
                chosen.design, Path(self.output), self.part, self.clock, reorders=reorders
            )
        except OSError as error:
            raise BraidError(
                f"cannot write the design: {error.strerror}", location=SourceLocation(self.output)
            ) from error

    def _dsps(self, module: ModuleOp) -> int:
        if self.dsp is not None:
            return self.dsp
        machine = part_of(module, self.target)
        if machine is None:
            raise BraidError(
                "a design in f32 for a target without an FPGA",
                hint="give the pass an option target=fpga-u280, or a number of DSPs, such as "
                "dsp=220",
            )
        return int(machine.fact("dsp"))


def _say(function: FuncOp, chosen: Selected, *, reorders: bool) -> None:
    found = chosen.found
    order = "" if reorders else "; strict sums are added one after the other, which may take longer"
    emit_remark(
        function,
        LowerFloatsToCppPass.name,
        f"{len(chosen.design.functions)} loop nests in {found.cycles} cycles, at least "
        f"{chosen.lower_bound} with as many DSPs; {found.resources.dsps} DSPs and "
        f"{found.resources.blocks} blocks of 18 Kbit, estimated{order}",
        cost=found.cycles,
        lower_bound=chosen.lower_bound,
        gap=(found.cycles - chosen.lower_bound) / found.cycles,
        dsp=found.resources.dsps,
        bram18=found.resources.blocks,
    )
