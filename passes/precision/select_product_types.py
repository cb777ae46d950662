"""`select-product-types`: decides which products are computed from narrower numbers than stated."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, bf16, f32
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import MODEL_TYPE, PRODUCT_TYPE
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.targets.costs.cost_source import CostSource
from braid.targets.kernels.single_op_group import single_op_group
from braid.targets.machines.resolve import runs_on, target_of


@dataclass(frozen=True)
class SelectProductTypesPass(DecisionPass):
    """Notes which products of f32 are made faster of bf16, with sums in f32.

    In: `braid.conv` and `braid.matmul` by known weights. `precision=model` considers the products
    that the model computes in bf16 (`braid.model_type`), `precision=bf16` all of them. Out:
    `braid.product_type`, for `apply-product-types`, where kernels of the op's device cost less so.
    With `devices` only products on these are looked at.

    ```mlir
    %y = braid.matmul %x, %w {braid.model_type = bf16}
        : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
    // braid.matmul %x, %w {braid.product_type = bf16} …
    ```
    """

    name = "select-product-types"

    target: str | None = None
    devices: tuple[str, ...] = ()
    precision: Literal["model", "bf16"] = "model"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide product by product; equal ones are asked about once."""
        target, known = target_of(op, self.target), ParameterExpressions()
        costs = CostSource(target)
        products = narrow = 0
        for product in op.walk():
            if not isinstance(product, ConvOp | MatmulOp):
                continue
            model_type = product.attributes.pop(MODEL_TYPE, None)
            if self.precision == "model" and model_type != bf16:
                continue
            if not runs_on(product, self.devices, target) or not _can_be_narrow(product, known):
                continue
            products += 1
            product.attributes.pop(PRODUCT_TYPE, None)
            wide, less = (_seconds(costs, product, kind) for kind in (f32, bf16))
            if less < wide:
                product.attributes[PRODUCT_TYPE] = bf16
                narrow += 1
        if products:
            emit_remark(
                op,
                self.name,
                f"{narrow} of {products} products are computed in bf16",
                products=products,
                narrow=narrow,
            )


def _can_be_narrow(product: ConvOp | MatmulOp, known: ParameterExpressions) -> bool:
    input, weight = product.operands
    shapes = (*shape_of(input), *shape_of(weight))
    return (
        product.accumulator is None
        and element_type_of(input) == f32
        and known.is_known(weight)
        and not known.is_known(input)
        and DYNAMIC_INDEX not in shapes
    )


def _seconds(costs: CostSource, product: Operation, kind: Attribute) -> float:
    """Return the cost of the best kernel for the product alone, with operands of this type."""
    types = {operand: TensorType(kind, shape_of(operand)) for operand in product.operands}
    group = single_op_group(product, types, {} if kind == f32 else {"accumulator": f32})
    choices = costs.of(product).choices(group)
    return min((cost.seconds for _, cost in choices), default=inf)
