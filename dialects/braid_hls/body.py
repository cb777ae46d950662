"""The ops in the body of a stage: they work on lanes, and each begins in a cycle of an iteration.

Values are `vector<L x iN>`: L signed numbers of N bits. `start` counts cycles from the one in which
the iteration begins; a result arrives `latency` cycles later, and is kept as long as it is needed.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

FOLDS = ("none", "channel", "reduction", "both", "image")
"""The folds of a stage for which an op has one entry each.

They are groups of channels, parts of sums, both, or all iterations of an image.
"""
COMPUTATIONS = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "maximum": 2,
    "minimum": 2,
    "and": 2,
    "or": 2,
    "xor": 2,
    "shift_right": 2,
    "wrap": 1,
    "wrap_unsigned": 1,
}
"""Computations of lanes with their number of operands."""
REDUCTIONS = ("add", "maximum")
"""The ways in which lanes, and iterations, are combined."""

Integers = npt.NDArray[np.int64]


def lanes_of(value: SSAValue) -> int:
    """Return how many numbers a value has."""
    return cast(VectorType[Attribute], value.type).get_shape()[0]


def bits_of(value: SSAValue) -> int:
    """Return the bits of each number of a value."""
    return cast(IntegerType, cast(VectorType[Attribute], value.type).element_type).width.data


def lanes_type(lanes: int, bits: int) -> VectorType[IntegerType]:
    """Return the type of `lanes` numbers of `bits` bits."""
    return VectorType(IntegerType(bits), [lanes])


def bits_for(low: int, high: int) -> int:
    """Return the fewest bits of signed numbers from `low` to `high`."""
    return (
        max(
            int(low if low >= 0 else ~low).bit_length(),
            int(high if high >= 0 else ~high).bit_length(),
        )
        + 1
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise VerifyException(message)


class ScheduledOp(IRDLOperation):
    """Base of the ops in a stage: `start` and `latency` in cycles."""

    start = attr_def(IntegerAttr[IntegerType])
    latency = attr_def(IntegerAttr[IntegerType])
    output = result_def(VectorType[IntegerType])

    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    @property
    def begins(self) -> int:
        """The cycle of the iteration in which it reads its operands."""
        return self.start.value.data

    @property
    def ready(self) -> int:
        """The cycle of the iteration in which its result arrives."""
        return self.begins + self.latency.value.data


def _scheduled(
    start: int, latency: int, rest: dict[str, Attribute] | None = None
) -> dict[str, Attribute]:
    return {
        "start": IntegerAttr(start, i64),
        "latency": IntegerAttr(latency, i64),
        **(rest or {}),
    }


def dense(values: Integers) -> DenseIntOrFPElementsAttr:
    """Return a table of numbers as an attribute."""
    kind = TensorType(i64, values.shape)
    return DenseIntOrFPElementsAttr(kind, BytesAttr(values.astype("<i8").tobytes()))


def rows_of_table(attribute: DenseIntOrFPElementsAttr) -> Integers:
    """Return the numbers of a table, [rows, lanes]."""
    shape = attribute.get_shape()
    if attribute.get_element_type() == i64:
        return np.frombuffer(attribute.data.data, "<i8").astype(np.int64).reshape(shape)
    return np.array(list(cast(Any, attribute).get_values()), np.int64).reshape(shape)


@irdl_op_definition
class TableOp(ScheduledOp):
    """Numbers from a memory that is only read: row f of `values` in fold f of `by`.

    ```mlir
    %w = braid_hls.table {values = dense<[[1, -2], [3, 4]]> : tensor<2x2xi64>, by = "channel",
        start = 1 : i64, latency = 1 : i64} : vector<2xi4>
    ```
    """

    name = "braid_hls.table"

    values = attr_def(DenseIntOrFPElementsAttr)
    by = attr_def(StringAttr)

    assembly_format = "attr-dict `:` type($output)"

    def __init__(self, values: Integers, by: str, start: int) -> None:
        bits = bits_for(int(values.min()), int(values.max()))
        rest: dict[str, Attribute] = {"values": dense(values), "by": StringAttr(by)}
        super().__init__(
            attributes=_scheduled(start, int(by != "none"), rest),
            result_types=[lanes_type(values.shape[1], bits)],
        )

    @property
    def rows(self) -> Integers:
        """[folds, lanes]."""
        return rows_of_table(self.values)

    def verify_(self) -> None:
        """Raise for another `by`, lanes that are not the result's, and numbers that do not fit."""
        _require(self.by.data in FOLDS, f"by is '{self.by.data}', expected one of {FOLDS}")
        rows = self.rows
        _require(
            rows.ndim == 2 and rows.shape[1] == lanes_of(self.output),
            f"rows of {rows.shape[1:]} numbers, expected {lanes_of(self.output)}",
        )
        bits = bits_for(int(rows.min()), int(rows.max()))
        _require(bits <= bits_of(self.output), f"the numbers have {bits} bits")


@irdl_op_definition
class SelectOp(ScheduledOp):
    """Lanes of the operand: in fold f of `by`, lane i is the operand's lane `indices[f, i]`.

    ```mlir
    %x = braid_hls.select %w {indices = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>,
        by = "reduction", start = 2 : i64, latency = 1 : i64} : (vector<4xi9>) -> vector<2xi9>
    ```
    """

    name = "braid_hls.select"

    input = operand_def(VectorType[IntegerType])
    indices = attr_def(DenseIntOrFPElementsAttr)
    by = attr_def(StringAttr)

    def __init__(self, input: SSAValue, indices: Integers, by: str, start: int) -> None:
        rest: dict[str, Attribute] = {"indices": dense(indices), "by": StringAttr(by)}
        super().__init__(
            operands=[input],
            attributes=_scheduled(start, int(by != "none"), rest),
            result_types=[lanes_type(indices.shape[1], bits_of(input))],
        )

    @property
    def rows(self) -> Integers:
        """[folds, lanes]."""
        return rows_of_table(self.indices)

    def verify_(self) -> None:
        """Raise for another `by`, and for lanes that the operand does not have."""
        _require(self.by.data in FOLDS, f"by is '{self.by.data}', expected one of {FOLDS}")
        rows, count = self.rows, lanes_of(self.input)
        _require(
            rows.ndim == 2 and rows.shape[1] == lanes_of(self.output),
            f"rows of {rows.shape[1:]} numbers, expected {lanes_of(self.output)}",
        )
        _require(rows.min() >= 0 and rows.max() < count, f"index {rows.max()} of {count} lanes")


@irdl_op_definition
class JoinOp(ScheduledOp):
    """The concatenation of windows' lanes, as one window.

    ```mlir
    %x = braid_hls.join %a, %b {start = 2 : i64, latency = 0 : i64}
        : (vector<4xi9>, vector<2xi9>) -> vector<6xi9>
    ```
    """

    name = "braid_hls.join"

    inputs = var_operand_def(VectorType[IntegerType])

    def __init__(self, inputs: Sequence[SSAValue], start: int) -> None:
        kind = lanes_type(sum(map(lanes_of, inputs)), max(map(bits_of, inputs)))
        super().__init__(operands=[inputs], attributes=_scheduled(start, 0), result_types=[kind])

    def verify_(self) -> None:
        """Raise for operands that are not windows, other lanes than theirs, and too few bits."""
        _require(
            all(isinstance(value.owner, Block) for value in self.inputs),
            "joins what is computed, expected windows alone",
        )
        given, lanes = sum(map(lanes_of, self.inputs)), lanes_of(self.output)
        _require(given == lanes, f"{given} lanes do not become {lanes}")
        bits = max(map(bits_of, self.inputs), default=0)
        _require(bits <= bits_of(self.output), f"the numbers have {bits} bits")
        latency = self.latency.value.data
        _require(latency == 0, f"latency is {latency}, expected 0: nothing is computed")


@irdl_op_definition
class ComputeOp(ScheduledOp):
    """`kind` of each lane: exact but for `wrap`, which keeps the result's bits.

    Other results have the same lanes, and as many bits as the operation needs; narrower operands
    are sign-extended. `wrap_unsigned` keeps one bit less and adds a 0.

    ```mlir
    %y = braid_hls.compute %a, %b {kind = "mul", start = 3 : i64, latency = 1 : i64}
        : (vector<4xi9>, vector<4xi8>) -> vector<4xi17>
    ```
    """

    name = "braid_hls.compute"

    inputs = var_operand_def(VectorType[IntegerType])
    kind = attr_def(StringAttr)

    def __init__(
        self, kind: str, inputs: Sequence[SSAValue], bits: int, start: int, latency: int
    ) -> None:
        super().__init__(
            operands=[inputs],
            attributes=_scheduled(start, latency, {"kind": StringAttr(kind)}),
            result_types=[lanes_type(lanes_of(inputs[0]), bits)],
        )

    def verify_(self) -> None:
        """Raise for another kind or number of operands, and for lanes that differ."""
        arity = COMPUTATIONS.get(self.kind.data)
        _require(
            arity is not None, f"kind is '{self.kind.data}', expected one of {(*COMPUTATIONS,)}"
        )
        _require(len(self.inputs) == arity, f"{len(self.inputs)} operands, expected {arity}")
        counts = {lanes_of(value) for value in (*self.inputs, self.output)}
        _require(len(counts) == 1, f"operands and result have {sorted(counts)} lanes")


class ReducingOp(ScheduledOp):
    """Base of ops that reduce many numbers to fewer, by one of `REDUCTIONS`."""

    input = operand_def(VectorType[IntegerType])
    kind = attr_def(StringAttr)

    def __init__(
        self, kind: str, input: SSAValue, lanes: int, bits: int, start: int, latency: int
    ) -> None:
        super().__init__(
            operands=[input],
            attributes=_scheduled(start, latency, {"kind": StringAttr(kind)}),
            result_types=[lanes_type(lanes, bits)],
        )

    def _verify_kind(self) -> None:
        _require(self.kind.data in REDUCTIONS, f"kind is '{self.kind.data}', not {REDUCTIONS}")


@irdl_op_definition
class CombineOp(ReducingOp):
    """Adjacent lanes are reduced to one, by a tree with a register after each level.

    ```mlir
    %y = braid_hls.combine %x {kind = "add", start = 4 : i64, latency = 2 : i64}
        : (vector<8xi17>) -> vector<2xi19>
    ```
    """

    name = "braid_hls.combine"

    def __init__(self, kind: str, input: SSAValue, lanes: int, bits: int, start: int) -> None:
        super().__init__(kind, input, lanes, bits, start, levels(lanes_of(input) // lanes))

    def verify_(self) -> None:
        """Raise for another kind, lanes that do not divide, and another latency than the tree's."""
        self._verify_kind()
        given, lanes = lanes_of(self.input), lanes_of(self.output)
        _require(given % lanes == 0, f"{given} lanes do not become {lanes}")
        expected = levels(given // lanes)
        latency = self.latency.value.data
        _require(latency == expected, f"latency is {latency}, expected {expected}")


def levels(count: int) -> int:
    """Return the levels of a tree of ops with two operands each over `count` numbers."""
    return (count - 1).bit_length()


@irdl_op_definition
class AccumulateOp(ReducingOp):
    """Combines the results of a sum's folds; complete in the last one. One register a lane.

    A stage over the image reduces all positions, with a register for each group of channels.

    ```mlir
    %y = braid_hls.accumulate %x {kind = "add", start = 6 : i64, latency = 1 : i64}
        : (vector<2xi19>) -> vector<2xi21>
    ```
    """

    name = "braid_hls.accumulate"

    def __init__(self, kind: str, input: SSAValue, bits: int, start: int) -> None:
        super().__init__(kind, input, lanes_of(input), bits, start, 1)

    def verify_(self) -> None:
        """Raise for another kind or latency, and lanes that differ."""
        self._verify_kind()
        _require(lanes_of(self.input) == lanes_of(self.output), "lanes differ")
        latency = self.latency.value.data
        _require(latency == 1, f"latency is {latency}, expected 1: the next fold adds to it")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a stage's body: the lanes of one group of channels, written in their low bits.

    ```mlir
    braid_hls.yield %y : vector<2xi9>
    ```
    """

    name = "braid_hls.yield"

    value = operand_def(VectorType[IntegerType])

    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])


BODY_OPS: tuple[type[Operation], ...] = (
    AccumulateOp,
    CombineOp,
    ComputeOp,
    JoinOp,
    SelectOp,
    TableOp,
    YieldOp,
)
"""The ops of this file."""
