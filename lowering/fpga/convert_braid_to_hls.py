"""`convert-braid-to-hls`: a function of integer ops becomes a design for an FPGA."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.lowering.fpga.convert.design_of import design_of
from braid.support.errors import BraidError


def function_named(module: ModuleOp, name: str) -> FuncOp:
    """Return the function of this name. Raises BraidError if there is none."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
    for function in functions:
        if function.sym_name.data == name:
            return function
    raise BraidError(
        f"there is no function '{name}'",
        hint=f"expected one of {[function.sym_name.data for function in functions]}",
    )


@dataclass(frozen=True)
class ConvertBraidToHlsPass(ModulePass):
    """The function `function` becomes a `braid_hls.design`.

    In: a function of integer ops with constant weights, as `convert-qdq-to-integers` leaves it;
    quantization of arguments and dequantization of results stay with the caller. Out: stages, each
    an op with windows and the elementwise ops after it, scheduled by the cycle. They compute an
    output at once; `select-hls-schedule` decides how much of it, and `select-channel-depths` how
    many slots channels have; until then they have slots for the values in flight in their writer.
    Raises UnsupportedError naming what stages do not have.

    ```mlir
    func.func @main(%x: tensor<1x1x8x8xi8>) -> tensor<1x1x8x8xi8>
    // becomes
    braid_hls.design "main"
    ```
    """

    name = "convert-braid-to-hls"

    function: str = "main"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Put the design in the place of the function."""
        function = function_named(op, self.function)
        converted = design_of(function, {})
        block = function.parent
        assert block is not None, "functions stand in the module"
        block.insert_op_before(converted.design, function)
        block.erase_op(function)
