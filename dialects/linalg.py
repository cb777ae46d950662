"""The dialect `linalg`: xDSL's, with the bodies that upstream gives to its named ops.

A named op has its scalar ops in a region that is not printed. xDSL makes that region by itself, and
for some ops another than upstream. Source: MLIR, "LinalgNamedStructuredOps.yaml".
"""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.dialects.linalg import Linalg as XdslLinalg
from xdsl.dialects.linalg import ops
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException


def _require(op: Any, types: Sequence[Attribute], *, is_own: bool) -> None:
    """Raise VerifyException where upstream gives a named op another body than it gets here.

    A text that is invalid here is read by upstream.
    """
    if not is_own:
        raise VerifyException(f"'{op.name}' on {', '.join(map(str, types))} is upstream's")


class PoolingNchwMaxOp(ops.PoolingNchwMaxOp):
    """The largest element in each window, where xDSL reads the window in place of the result."""

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        """Return the maximum of the result and the element of the image."""
        types = cls.body_arg_types((*inputs, *outputs))
        _require(cls, types, is_own=types[0] == types[-1] != i1)
        block = Block(arg_types=types)
        kind = arith.MaximumfOp if isinstance(types[-1], AnyFloat) else arith.MaxSIOp
        largest = kind(block.args[-1], block.args[0])
        block.add_ops([largest, ops.YieldOp(largest.result)])
        return Region(block)


_SUMS: tuple[type[Operation], ...] = (
    ops.AddOp,
    ops.Conv2DNchwFchwOp,
    ops.Conv2DNgchwFgchwOp,
    ops.Conv2DNgchwGfchwOp,
    ops.Conv2DNhwc_FhwcOp,
    ops.Conv2DNhwc_HwcfOp,
    ops.Conv2DNhwgcGfhwcOp,
    ops.MatmulOp,
    ops.MulOp,
    ops.QuantizedMatmulOp,
    ops.SubOp,
)
"""Named ops with sums and products: of i1, upstream's are `or` and `and`, xDSL's are modulo 2."""

_ELEMENTWISE: tuple[type[Operation], ...] = (
    ops.AddOp,
    ops.CopyOp,
    ops.FillOp,
    ops.MaxOp,
    ops.MinOp,
    ops.MulOp,
    ops.SubOp,
)
"""Named ops whose operands upstream converts to the type of the result, and xDSL does not."""


def _checked(op: type[Operation]) -> type[Operation]:
    """Return the class of a named op that is invalid where upstream gives it another body."""

    def get_hidden_region(
        cls: Any, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]
    ) -> Region:
        types = cls.body_arg_types((*inputs, *outputs))
        is_mixed = op in _ELEMENTWISE and len(set(types)) > 1
        _require(cls, types, is_own=not is_mixed and not (i1 in types and op in _SUMS))
        return cast(Any, op).get_hidden_region(inputs, outputs)

    return type(op.__name__, (op,), {"get_hidden_region": classmethod(get_hidden_region)})


_OWN: dict[type[Operation], type[Operation]] = {op: _checked(op) for op in (*_SUMS, *_ELEMENTWISE)}
_OWN[ops.PoolingNchwMaxOp] = PoolingNchwMaxOp

Linalg = Dialect(
    "linalg", [_OWN.get(op, op) for op in XdslLinalg.operations], list(XdslLinalg.attributes)
)
