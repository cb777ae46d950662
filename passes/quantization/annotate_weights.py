"""`annotate-weights`: facts about the values of weights, which are known at compile time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from braid.analysis.interpreter.parameter_values import parameter_values
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import PAIRABLE
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.byte_pairs import STEP, pair_orders
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import is_byte
from braid.targets.machines.resolve import runs_on, target_of

Array = NDArray[Any]


@dataclass(frozen=True)
class AnnotateWeightsPass(ModulePass):
    """Says of int8 products whether their weight can be stored in pairs.

    In: any module. Out: `braid.pairable` on `braid.conv` and `braid.matmul` of unsigned bytes with
    a known weight of signed ones that has orders in which sums of two products fit 16 bits (see
    `byte_pairs`), so that kernels may multiply them so. A parameter has a value where the context
    does (see `ModelContext`). With `devices` only products on these are looked at.

    ```mlir
    %y = braid.matmul %x, %w : (tensor<8x64xui8>, tensor<64x64xi8>) -> tensor<8x64xi32>
    // braid.matmul %x, %w {braid.pairable} …
    ```
    """

    name = "annotate-weights"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotate the products of `op`."""
        target, known = target_of(op, self.target), ParameterExpressions()
        values = parameter_values(ctx, op)
        for product in op.walk():
            if not isinstance(product, ConvOp | MatmulOp) or not _is_of_bytes(product):
                continue
            weight = product.operands[1]
            if not known.is_known(weight) or not runs_on(product, self.devices, target):
                continue
            array = values.of(weight)
            if array is not None and _is_pairable(product, array):
                product.attributes[PAIRABLE] = UnitAttr()


def _is_of_bytes(product: ConvOp | MatmulOp) -> bool:
    first, second = (element_type_of(operand) for operand in product.operands)
    return is_byte(first) and is_byte(second) and is_unsigned(first) and not is_unsigned(second)


def _is_pairable(product: ConvOp | MatmulOp, weight: Array) -> bool:
    """Return whether there are orders for the weight of one group, or of all batches."""
    if not weight.size:
        return False
    if isinstance(product, ConvOp):
        if product.groups.value.data != 1:
            return False
        rows = np.moveaxis(weight.reshape(*weight.shape[:2], -1), 1, -1)
    else:
        if weight.size != weight.shape[-2] * weight.shape[-1]:
            return False
        rows = weight.reshape(weight.shape[-2:]).T[:, None]
    padding = -rows.shape[-1] % STEP
    return pair_orders(np.pad(rows, ((0, 0), (0, 0), (0, padding)))) is not None
