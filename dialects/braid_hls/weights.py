"""The op that reads known numbers in bursts from the memory beside the part, for a stage."""

from collections.abc import Mapping

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, i64
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, result_def
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid_hls.body import Integers, bits_for, dense, rows_of_table
from braid.dialects.braid_hls.design import StreamType, stream_of

BURST_BYTES = 4096
"""That a burst of AXI4 stays within: none crosses an address that this divides."""
MOST_BEATS = 256
"""Of a burst of AXI4."""
PORTS = (32, 64, 128, 256, 512, 1024)
"""Bits of a port."""


@irdl_op_definition
class WeightsOp(IRDLOperation):
    """Beats whose lanes are the rows of `values`, again and again, `repeats` times for an image.

    In memory each row is a word of `port` bits with its first lane lowest; rows are contiguous.
    They are read ahead: at most `bursts` requests of `burst` words each (the last one of `values`
    is shorter) are under way or in the buffer, which has a place for each word that is asked for.
    With as many, a memory that answers `latency` cycles after a request, and then gives a word in
    each, is never waited for but at the begin.
    Fails verification where rows do not fit the port, or a burst breaks a rule of AXI4.

    ```mlir
    %w = braid_hls.weights {values = dense<[[1, -2], [3, 4]]> : tensor<2x2xi64>, repeats = 64 : i64,
        port = 32 : i64, burst = 2 : i64, bursts = 9 : i64, latency = 12 : i64}
        : !braid_hls.stream<2 x i4>
    ```
    """

    name = "braid_hls.weights"

    values = attr_def(DenseIntOrFPElementsAttr)
    repeats = attr_def(IntegerAttr[IntegerType])
    port = attr_def(IntegerAttr[IntegerType])
    burst = attr_def(IntegerAttr[IntegerType])
    bursts = attr_def(IntegerAttr[IntegerType])
    latency = attr_def(IntegerAttr[IntegerType])
    output = result_def(StreamType)

    assembly_format = "attr-dict `:` type($output)"

    def __init__(self, values: Integers, numbers: Mapping[str, int]) -> None:
        """Take `values` and, in `numbers`, the other attributes."""
        bits = bits_for(int(values.min()), int(values.max()))
        super().__init__(
            attributes={
                "values": dense(values),
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
            },
            result_types=[StreamType.of(values.shape[1], IntegerType(bits))],
        )

    @property
    def rows(self) -> Integers:
        """[words, lanes]."""
        return rows_of_table(self.values)

    @property
    def words(self) -> int:
        """Words in memory."""
        return self.values.get_shape()[0]

    @property
    def beats(self) -> int:
        """Of an image."""
        return self.words * self.repeats.value.data

    @property
    def places(self) -> int:
        """Words of the buffer."""
        return self.burst.value.data * self.bursts.value.data

    def verify_(self) -> None:
        """See the class."""
        kind, shape = stream_of(self.output), self.values.get_shape()
        if len(shape) != 2 or shape[1] != kind.lanes.data:
            raise VerifyException(f"rows of {shape[1:]} numbers, expected {kind.lanes.data}")
        rows, width = self.rows, kind.element.width.data
        if bits_for(int(rows.min()), int(rows.max())) > width:
            raise VerifyException(f"numbers from {rows.min()} to {rows.max()} in {width} bits")
        for name in ("repeats", "burst", "bursts", "latency"):
            if (found := getattr(self, name).value.data) < 1:
                raise VerifyException(f"{name} is {found}, expected at least 1")
        port, burst = self.port.value.data, self.burst.value.data
        if port not in PORTS or port < kind.bits:
            raise VerifyException(
                f"a port of {port} bits for rows of {kind.bits}, expected one of {PORTS}"
            )
        if burst & (burst - 1) or burst > MOST_BEATS or burst * port > 8 * BURST_BYTES:
            raise VerifyException(
                f"bursts of {burst} words of {port} bits, expected a power of two of at most "
                f"{MOST_BEATS} words and {BURST_BYTES} bytes"
            )
