"""Memories in a testbench, which answer requests of AXI4 in their order."""

from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.rtl.weights_module import ADDRESS_BITS, memory_words

_BASE = 0x1_0000_0000
_PENDING = 16
"""Requests that a memory takes before it has answered them."""


def memory_ports(number: int) -> str:
    """Return how the design is connected to memory `number`."""
    signals = ("araddr", "arlen", "arvalid", "arready", "rdata", "rvalid", "rready")
    joined = ", ".join(f".m_axi{number}_{one}(w{number}_{one})" for one in signals)
    open_ports = ", ".join(
        f".m_axi{number}_{one}()" for one in ("arsize", "arburst", "arcache", "arprot")
    )
    return f",\n    .weights{number}_base(w{number}_base),\n    {joined},\n    {open_ports}"


def memory(number: int, op: WeightsOp) -> str:
    """Return the memory: a word a cycle, the first one some cycles after the request."""
    name, bits, latency = f"w{number}", op.port.value.data, op.latency.value.data
    last = _PENDING - 1
    size = (bits // 8).bit_length() - 1
    return f"""
  logic [{bits - 1}:0] {name}_words [0:{op.words - 1}];
  wire [{ADDRESS_BITS - 1}:0] {name}_base = {ADDRESS_BITS}'h{_BASE * (1 + number):x};
  wire [{ADDRESS_BITS - 1}:0] {name}_araddr;
  wire [7:0] {name}_arlen;
  wire {name}_arvalid, {name}_rready;
  logic [{ADDRESS_BITS - 1}:0] {name}_first [0:{last}];
  integer {name}_length [0:{last}], {name}_time [0:{last}];
  integer {name}_asked = 0, {name}_answered = 0, {name}_word = 0, {name}_cycle = 0;
  wire {name}_arready = {name}_asked - {name}_answered < {_PENDING};
  wire {name}_rvalid = {name}_asked != {name}_answered
      && {name}_time[{name}_answered % {_PENDING}] <= {name}_cycle;
  wire [{bits - 1}:0] {name}_rdata = {name}_words[
      (({name}_first[{name}_answered % {_PENDING}] - {name}_base) >> {size}) + {name}_word];
  always @(posedge clk) begin
    {name}_cycle <= {name}_cycle + 1;
    if (!rst && {name}_arvalid && {name}_arready) begin
      {name}_first[{name}_asked % {_PENDING}] <= {name}_araddr;
      {name}_length[{name}_asked % {_PENDING}] <= {name}_arlen + 1;
      {name}_time[{name}_asked % {_PENDING}] <= {name}_cycle + {latency};
      {name}_asked <= {name}_asked + 1;
    end
    if ({name}_rvalid && {name}_rready) begin
      if ({name}_word + 1 == {name}_length[{name}_answered % {_PENDING}]) begin
        {name}_word <= 0;
        {name}_answered <= {name}_answered + 1;
      end else {name}_word <= {name}_word + 1;
    end
  end
"""


def memory_table(number: int, op: WeightsOp) -> str:
    """Return the initial contents of the memory."""
    bits = op.port.value.data
    return "\n".join(
        f"    w{number}_words[{at}] = {bits}'h{word:x};" for at, word in enumerate(memory_words(op))
    )
