"""What an op moves and computes: bytes and scalar operations, from its types and structure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.operation_counts import MATRIX_OPS, flops
from braid.analysis.tiles.read_shares import read_share
from braid.dialects.braid.base import AnyTensor, element_type_of, shape_of
from braid.dialects.braid.regions import GroupOp

ESTIMATED = ("seconds", "bytes", "flops")
"""The resources of which the roofline says something for every op."""


@dataclass(frozen=True)
class Amounts:
    """How much an op takes of each resource of units, by name.

    `matrix` and `vector` are scalar operations, `flops` both together. `load` and `store` are the
    bytes of its operands and results, which a chip moves whole; `bytes` those that it reads and
    writes: of a table, the rows that are gathered.
    """

    by_resource: Mapping[str, float]

    @cached_property
    def moved(self) -> int:
        """Bytes read and written."""
        return int(self.by_resource["bytes"])


def amounts_of(op: Operation, *, static: bool = False) -> Amounts:
    """What `op` reads and computes, each operand once; a fused group reads only its operands.

    What computes nothing passes its elements through the unit for vectors. Open dims count as 1;
    raises UnsupportedError for one if the op has to be `static`.
    """
    inner = list(op.body.block.ops) if isinstance(op, GroupOp) else [op]
    matrix = sum(flops(each) for each in inner if isinstance(each, MATRIX_OPS))
    vector = sum(flops(each) for each in inner if not isinstance(each, MATRIX_OPS))
    size = value_bytes if static else moved_bytes
    operands = dict.fromkeys(op.operands)
    load = sum(map(size, operands))
    read = sum(round(size(value) * read_share(op, value)) for value in operands)
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
    """Bytes of a tensor, 0 of anything else; open dims count as 1."""
    is_tensor = isinstance(value.type, TensorType)
    return logical_bytes(cast(AnyTensor, value.type)) if is_tensor else 0


def _elements(value: SSAValue) -> int:
    return (
        math.prod(max(extent, 1) for extent in shape_of(value))
        if isinstance(value.type, TensorType)
        else 1
    )


def computed_type(op: Operation) -> str:
    """What `op` computes with, such as `f32`: the elements of its first operand, or result."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType):
            return str(element_type_of(value))
    return "f32"
