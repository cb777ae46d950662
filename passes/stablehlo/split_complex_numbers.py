"""Pass `split-complex-numbers`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.stablehlo import StablehloOp
from braid.passes.conversion.converters import INVALID_OP_ERRORS
from braid.passes.stablehlo.complex_node import ComplexNode, Pair, is_complex, part_type
from braid.passes.stablehlo.complex_ops import split_op
from braid.support.errors import UnsupportedError


@dataclass(frozen=True)
class SplitComplexNumbersPass(ModulePass):
    """Rewrites ops of StableHLO on complex numbers as ops on their real and imaginary parts.

    Carried values, results and arguments of regions become two. Fourier transforms become products
    with matrices of sines and cosines in f64. Arguments and results of functions stay real: raises
    UnsupportedError for complex ones, and for an op that has no form of two parts.

    ```mlir
    %z = "stablehlo.complex"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
    %w = "stablehlo.add"(%z, %z) : (tensor<4xcomplex<f32>>, …) -> tensor<4xcomplex<f32>>
    %y = "stablehlo.imag"(%w) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    // becomes
    %y = "stablehlo.add"(%b, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "split-complex-numbers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every op of `op` on complex numbers, in place."""
        for function in op.ops:
            if isinstance(function, FuncOp) and any(map(_has_complex, function.walk())):
                _require_real(function, "argument", function.args)
                splitting = _Splitting()
                for block in function.body.blocks:
                    splitting.split(block)
                splitting.erase()


def _has_complex(op: Operation) -> bool:
    """Return whether an op computes with complex numbers, or a region of it takes them."""
    arguments = [argument for region in op.regions for b in region.blocks for argument in b.args]
    return any(is_complex(value) for value in (*op.operands, *op.results, *arguments))


def _require_real(op: Operation, what: str, values: Sequence[SSAValue]) -> None:
    for index, value in enumerate(values):
        if is_complex(value):
            raise UnsupportedError(
                f"{what} {index} of the function has type {value.type}, expected real numbers",
                location=source_location(op),
                hint="pass and return real and imaginary parts as tensors of their own",
            )


class _Splitting:
    """The ops of a function, which are split in turn."""

    def __init__(self) -> None:
        self._pairs: dict[SSAValue, Pair] = {}
        self._replaced: list[Operation] = []
        self._arguments: list[BlockArgument] = []

    def split(self, block: Block) -> None:
        """Split the complex results of the ops of a block and of their regions."""
        for op in list(block.ops):
            if isinstance(op, FuncReturnOp):
                _require_real(op, "result", op.operands)
            has_complex = _has_complex(op)
            for inner in [inner for region in op.regions for inner in region.blocks]:
                self._split_arguments(inner)
                self.split(inner)
            if has_complex:
                self._replace(op)

    def _split_arguments(self, block: Block) -> None:
        for argument in list(block.args):
            if is_complex(argument):
                type = part_type(argument)
                real, imaginary = (
                    block.insert_arg(type, argument.index + offset) for offset in (1, 2)
                )
                self._pairs[argument] = (real, imaginary)
                self._arguments.append(argument)

    def _replace(self, op: Operation) -> None:
        if not isinstance(op, StablehloOp):
            raise UnsupportedError(
                f"'{op.name}' is applied to complex numbers",
                location=source_location(op),
                hint="apply ops of StableHLO to them",
            )
        node = ComplexNode(op, self._pairs)
        try:
            parts = list(zip(op.results, split_op(node), strict=True))
        except VerifyException as error:
            node.fail(str(error))
        except INVALID_OP_ERRORS as error:
            node.fail(f"its fields, regions and types do not fit together: {error}")
        for result, part in parts:
            if isinstance(part, tuple):
                self._pairs[result] = part
            else:
                result.replace_all_uses_with(part)
        self._replaced.append(op)

    def erase(self) -> None:
        """Erase the replaced ops, which have no uses any more."""
        for op in reversed(self._replaced):
            Rewriter.erase_op(op)
        for argument in self._arguments:
            argument.block.erase_arg(argument)
