"""`annotate-weights`: what the values of weights allow, which are known at compile time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.interpreter.machine import OPERAND_ERRORS
from braid.analysis.structure.model_context import parameters_in
from braid.analysis.structure.parameter_expressions import PREPARE, ParameterExpressions
from braid.dialects.braid.attribute_names import PAIRABLE, PREPARED_KEYS
from braid.dialects.braid.base import TensorOp, element_type_of
from braid.dialects.braid.byte_pairs import STEP, pair_orders
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import is_byte
from braid.support.errors import BraidError
from braid.targets.machines.resolve import runs_on, target_of

Array = NDArray[Any]


@dataclass(frozen=True)
class AnnotateWeightsPass(ModulePass):
    """Says of products of bytes whether their weight can be stored in pairs.

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
        values = _Values(parameters_in(ctx), _prepared(op))
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
    """Whether there are orders for the weight of one group, or of all batches."""
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


def _prepared(module: ModuleOp) -> dict[str, SSAValue]:
    """What `@prepare` makes, by key."""
    for function in module.ops:
        if not isinstance(function, FuncOp) or function.sym_name.data != PREPARE:
            continue
        last = function.body.block.last_op
        if PREPARED_KEYS in function.attributes and isinstance(last, ReturnOp):
            keys = cast("ArrayAttr[StringAttr]", function.attributes[PREPARED_KEYS])
            return dict(zip((key.data for key in keys), last.arguments, strict=True))
    return {}


@dataclass(frozen=True)
class _Values:
    """Evaluates expressions of parameters: by key, or by what makes them in `prepared`."""

    parameters: Mapping[str, Array]
    prepared: Mapping[str, SSAValue]
    _found: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, Array | None])

    def of(self, value: SSAValue) -> Array | None:
        """The array; None where a parameter has no value, or an op no result."""
        self._found.clear()  # weights are large, and rarely share what they are made of
        stack = [value]
        while stack:
            current = stack[-1]
            sources = self._sources(current)
            missing = [source for source in sources if source not in self._found]
            if current in self._found or not missing:
                stack.pop()
                if current not in self._found:
                    self._found[current] = self._evaluated(current, sources)
            else:
                stack.extend(missing)
        return self._found[value]

    def _sources(self, value: SSAValue) -> tuple[SSAValue, ...]:
        op = cast(Operation, value.owner)
        if isinstance(op, ParameterOp):
            made = self.prepared.get(op.key.data)
            return () if made is None else (made,)
        return tuple(op.operands)

    def _evaluated(self, value: SSAValue, sources: tuple[SSAValue, ...]) -> Array | None:
        op = cast(Operation, value.owner)
        operands = [self._found[source] for source in sources]
        if isinstance(op, ParameterOp):
            return operands[0] if operands else self.parameters.get(op.key.data)
        if not isinstance(op, TensorOp) or any(operand is None for operand in operands):
            return None
        try:
            results = op.evaluate(*cast("list[Array]", operands))
        except (BraidError, *OPERAND_ERRORS):
            return None
        return dict(zip(op.results, results, strict=True))[cast(Any, value)]
