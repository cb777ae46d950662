"""Count what an op moves and computes, from its types and structure, and name its kinds.

Predictions of one kind have similar errors. Their errors depend on the family, and on the
bottleneck: a matmul that uses each weight once waits for memory, one that uses it a hundred times
does not, and small kernels spend their time outside of their loops.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.operation_counts import MATRIX_OPS, flops
from braid.analysis.tiles.read_shares import read_shares
from braid.dialects.braid.base import AnyTensor, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

ESTIMATED = ("seconds", "bytes", "flops")
"""The resources that the roofline counts for every op."""


NO_FAMILY = "roofline"
"""The family of ops that no family makes."""

_LEAST_REUSE, _MOST_REUSE = -1, 9
"""Binary logarithms of operations per byte of weights: beyond them arithmetic takes the time."""
_SIZES = 4.0
"""The factor by which the sizes of a kind may differ."""


@dataclass(frozen=True)
class Amounts:
    """The amounts that an op takes of each resource of units, by name.

    `matrix` and `vector` are scalar operations, `flops` both together. `load` and `store` are the
    bytes of its operands and results, which a chip moves completely; `bytes` those that it reads
    and writes: of a table, the rows that are gathered.
    """

    by_resource: Mapping[str, float]

    @cached_property
    def moved(self) -> int:
        """Bytes read and written."""
        return int(self.by_resource["bytes"])


def amounts_of(op: Operation, *, static: bool = False) -> Amounts:
    """Return what `op` reads and computes, each operand once; a fused group reads only its
    operands.

    An op that computes nothing passes its elements through the vector unit. Open dims count as 1;
    raises UnsupportedError for one if the op has to be `static`.
    """
    inner = list(op.body.block.ops) if isinstance(op, GroupOp) else [op]
    matrix = sum(flops(each) for each in inner if isinstance(each, MATRIX_OPS))
    vector = sum(flops(each) for each in inner if not isinstance(each, MATRIX_OPS))
    size = value_bytes if static else moved_bytes
    shares = read_shares(op)
    load = sum(map(size, shares))
    read = sum(round(size(value) * share) for value, share in shares.items())
    store = sum(map(size, op.results))
    passed = vector if matrix or vector else sum(map(_elements, op.results))
    return Amounts(
        {
            "matrix": matrix,
            "vector": passed,
            "flops": matrix + vector,
            "load": load,
            "store": store,
            "bytes": read + store,
        }
    )


def moved_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor, 0 of anything else; open dims count as 1."""
    is_tensor = isinstance(value.type, TensorType)
    return logical_bytes(cast(AnyTensor, value.type)) if is_tensor else 0


def _elements(value: SSAValue) -> int:
    return (
        math.prod(max(extent, 1) for extent in shape_of(value))
        if isinstance(value.type, TensorType)
        else 1
    )


def computed_type(op: Operation) -> str:
    """Return what `op` computes with, such as `f32`: the elements of its first operand, or
    result.
    """
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType):
            return str(element_type_of(value))
    return "f32"


def kinds_of(op: Operation, family: str, *, is_far: bool | None = None) -> tuple[str, ...]:
    """Return the kinds of `op`, which may be a group, from coarse to fine.

    Who makes its kernel and in which type; which op takes most of it, and how often that uses each
    byte of its weights; whether the model's weights stay in caches from run to run or come from
    memory (`is_far`, None for unknown); and how large it is. An op that only moves elements is
    often free, because its operands are stored in their final place, unless they come from outside
    of the function.
    """
    main = main_op(op)
    coarse = f"{family or NO_FAMILY} {computed_type(op)}"
    if not flops(op):
        coarse += " moved from outside" if _is_from_outside(op) else " moved"
    middle = f"{coarse} {kind_name(main)}"
    weights = _weight_bytes(main)
    if weights:
        reuse = math.floor(math.log2(max(flops(main), 1) / weights))
        middle += f" reuse {min(max(reuse, _LEAST_REUSE), _MOST_REUSE)}"
    place = middle
    if is_far is not None and flops(op):
        place += " far" if is_far else " near"
    amounts = amounts_of(op)
    size = max(amounts.by_resource["flops"], amounts.moved, 1.0)
    kinds = (coarse, middle, place, f"{place} size {math.floor(math.log(size, _SIZES))}")
    return tuple(dict.fromkeys(kinds))


def model_weight_bytes(op: Operation) -> int:
    """Return the bytes of the weights that the functions of the module around `op` read, each
    counted once.
    """
    module = op.get_toplevel_object()
    if not isinstance(module, ModuleOp):
        return 0
    found = {
        inner.key.data: moved_bytes(inner.output)
        for function in runtime_functions(module)
        for inner in function.walk()
        if isinstance(inner, ParameterOp)
    }
    return sum(found.values())


def kind_name(op: Operation) -> str:
    """Return the kind of an op: its name, or the kind of an opaque one."""
    return op.kind.data if isinstance(op, OpaqueOp) else op.name


def main_op(op: Operation) -> Operation:
    """Return the member of a group that computes most, the first of equals; of other ops,
    themselves.
    """
    members = list(_members(op))
    return max(members, key=flops) if members else op


def _members(op: Operation) -> Iterable[Operation]:
    if isinstance(op, GroupOp):
        for inner in op.body.block.ops:
            if not isinstance(inner, YieldOp | ConstantOp):
                yield from _members(inner)
    else:
        yield op


def _is_from_outside(op: Operation) -> bool:
    owners = [value.owner for value in op.operands]
    return any(isinstance(o, Block) and isinstance(o.parent_op(), FuncOp) for o in owners)


def _weight_bytes(op: Operation) -> int:
    """Return the bytes of the second factor of a product, which each row of the first one reads
    again.
    """
    if not isinstance(op, MATRIX_OPS):
        return 0
    assert isinstance(op, ConvOp | ConvTransposeOp | MatmulOp)
    return moved_bytes(op.operands[1])
