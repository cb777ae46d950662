"""Pass `split-complex-numbers`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.stablehlo import StablehloOp
from braid.passes.conversion.converters import INVALID_OP_ERRORS
from braid.passes.stablehlo.complex_node import (
    ComplexNode,
    Pair,
    has_parts,
    is_complex,
    part_of,
    part_type,
)
from braid.passes.stablehlo.complex_ops import split_op
from braid.support.errors import UnsupportedError


@dataclass(frozen=True)
class SplitComplexNumbersPass(ModulePass):
    """Rewrites ops of StableHLO on complex numbers as ops on their real and imaginary parts.

    Carried values, results and arguments of regions become two. So do those of functions, which are
    named `z.real` and `z.imag` after what they are parts of. Raises UnsupportedError for an op that
    has no form of two parts.

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
                splitting = _Splitting()
                _split_ports(function)
                for block in function.body.blocks:
                    splitting.split_arguments(block)
                    splitting.split(block)
                splitting.erase()


def _has_complex(op: Operation) -> bool:
    """Return whether an op computes with complex numbers, or a region of it takes them."""
    arguments = [argument for region in op.regions for b in region.blocks for argument in b.args]
    return any(is_complex(value) for value in (*op.operands, *op.results, *arguments))


def _split_ports(function: FuncOp) -> None:
    """Give the function the type and the names that it has when its block is split."""
    own = function.function_type
    taken, returned = list(own.inputs), list(own.outputs)
    function.arg_attrs = _split_names(function.arg_attrs, input_names(function), taken)
    function.res_attrs = _split_names(function.res_attrs, output_names(function), returned)
    function.function_type = FunctionType.from_lists(_split_types(taken), _split_types(returned))


def _split_types(types: Sequence[Attribute]) -> list[Attribute]:
    return [part for type in types for part in ([part_of(type)] * 2 if has_parts(type) else [type])]


def _split_names(
    given: ArrayAttr[DictionaryAttr] | None, names: Sequence[str], types: Sequence[Attribute]
) -> ArrayAttr[DictionaryAttr] | None:
    """Return what is said of arguments or results, with two dictionaries for each complex one."""
    if not any(map(has_parts, types)):
        return given
    nothing: Mapping[str, Attribute] = {}
    fields = [nothing] * len(types) if given is None else [own.data for own in given]
    parts: list[DictionaryAttr] = []
    for name, type, own in zip(names, types, fields, strict=True):
        kinds = (".real", ".imag") if has_parts(type) else ("",)
        parts += [DictionaryAttr({**own, NAME: StringAttr(name + kind)}) for kind in kinds]
    return ArrayAttr(parts)


class _Splitting:
    """The ops of a function, which are split in turn."""

    def __init__(self) -> None:
        self._pairs: dict[SSAValue, Pair] = {}
        self._replaced: list[Operation] = []
        self._arguments: list[BlockArgument] = []

    def split(self, block: Block) -> None:
        """Split the complex results of the ops of a block and of their regions."""
        for op in list(block.ops):
            has_complex = _has_complex(op)
            for inner in [inner for region in op.regions for inner in region.blocks]:
                self.split_arguments(inner)
                self.split(inner)
            if has_complex and isinstance(op, FuncReturnOp):
                parts = [part for v in op.operands for part in self._pairs.get(v, (v,))]
                op.operands = parts
            elif has_complex:
                self._replace(op)

    def split_arguments(self, block: Block) -> None:
        """Give a block two arguments in place of each complex one."""
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
