"""The op that permutes the numbers of an image: a memory, written and read by address."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid_hls.body import Integers
from braid.dialects.braid_hls.design import StreamType, stream_of

PERMUTE_LATENCY = 2
"""Cycles from the address to the beat: the memory's register, and that behind its lanes."""


@irdl_op_definition
class PermuteOp(IRDLOperation):
    """Number i of the result, an image's beats behind each other, is the operand's `order[i]`.

    A memory of `images` images, so that one is written while another one is read. Beats that come
    in are its words: word w is in bank w modulo `banks`. An image is written in as many cycles as
    it has beats; reading starts in the next cycle and takes `ii` cycles for each output beat, each
    of which reads a word of every bank. `unroll` = (banks, lanes that a cycle gives) is the
    decision of `select-hls-schedule`, which `apply-hls-schedule` carries out. Fails verification if
    `order` is no permutation of whole beats, or `ii` does not divide.

    ```mlir
    %y = braid_hls.permute %x {order = array<i64: 0, 2, 4, 1, 3, 5>, images = 2 : i64,
        banks = 1 : i64, ii = 3 : i64}
        : (!braid_hls.stream<2 x i8>) -> !braid_hls.stream<3 x i8>
    ```
    """

    name = "braid_hls.permute"

    input = operand_def(StreamType)
    order = attr_def(DenseArrayBase[IntegerType])
    images = attr_def(IntegerAttr[IntegerType])
    banks = attr_def(IntegerAttr[IntegerType])
    ii = attr_def(IntegerAttr[IntegerType])
    unroll = opt_attr_def(DenseArrayBase[IntegerType])
    output = result_def(StreamType)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, stream: SSAValue, output: StreamType, order: Integers, ii: int) -> None:
        super().__init__(
            operands=[stream],
            result_types=[output],
            attributes={
                "order": DenseArrayBase.from_list(i64, [int(one) for one in order]),
                "images": IntegerAttr(2, i64),
                "banks": IntegerAttr(1, i64),
                "ii": IntegerAttr(ii, i64),
            },
        )

    @property
    def label(self) -> StringAttr:
        """The name that reports give it."""
        return StringAttr("permute")

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """The operand."""
        return [self.input]

    @property
    def latency(self) -> IntegerAttr[IntegerType]:
        """Cycles from the begin of a beat's last pass until it is there."""
        return IntegerAttr(PERMUTE_LATENCY, i64)

    @property
    def numbers(self) -> Integers:
        """`order`."""
        return np.array(self.order.get_values(), np.int64)

    @property
    def words(self) -> int:
        """Beats of an image that come in."""
        return len(self.order) // stream_of(self.input).lanes.data

    @property
    def beats(self) -> int:
        """Counts of an image's results."""
        return len(self.order) // stream_of(self.output).lanes.data

    @property
    def iterations(self) -> int:
        """Cycles from image to image: to write one, or to read one."""
        return max(self.words, self.beats * self.ii.value.data)

    def verify_(self) -> None:
        """See the class."""
        numbers, given = self.numbers, stream_of(self.input)
        made, ii = stream_of(self.output), self.ii.value.data
        if given.element != made.element:
            raise VerifyException(f"{given.element} goes in and {made.element} comes out")
        if numbers.size == 0 or not np.array_equal(np.sort(numbers), np.arange(numbers.size)):
            raise VerifyException("order is no permutation of the numbers of an image")
        for kind in (given, made):
            if numbers.size % kind.lanes.data:
                raise VerifyException(f"{numbers.size} numbers in beats of {kind.lanes.data}")
        if ii < 1 or made.lanes.data % ii:
            raise VerifyException(f"ii is {ii}, which does not divide {made.lanes.data} lanes")
        for name in ("images", "banks"):
            if (found := getattr(self, name).value.data) < 1:
                raise VerifyException(f"{name} is {found}, expected at least 1")
