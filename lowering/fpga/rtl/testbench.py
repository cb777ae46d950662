"""A testbench in SystemVerilog that checks a design by itself, in any simulator."""

from collections.abc import Sequence

from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.rtl.control_module import SUFFIX, Counted
from braid.lowering.fpga.rtl.ports import Array
from braid.lowering.fpga.rtl.testbench_memory import memory, memory_ports, memory_table


def testbench(
    top: str,
    inputs: Sequence[tuple[Counted, Array]],
    outputs: Sequence[tuple[Counted, Array]],
    most_cycles: int,
    weights: Sequence[WeightsOp] = (),
) -> str:
    """Return `{top}_testbench`, which gives the control module of `top` an image and compares
    results.

    Arrays are words [beats, words] of the ports. It prints `PASSED`, or the differences and
    `FAILED`, also if nothing has come out after `most_cycles`. It contains the memories of weights.
    """
    declared = "\n".join([_input(one) for one, _ in inputs] + [_output(one) for one, _ in outputs])
    ports = _ports(len(inputs), len(outputs), len(weights))
    tables = "\n".join(
        [_table("s", *one) for one in inputs]
        + [_table("m", *one) for one in outputs]
        + [memory_table(*one) for one in enumerate(weights)]
    )
    memories = "".join(memory(*one) for one in enumerate(weights))
    return f"""`timescale 1ns / 1ps

module {top}_testbench;
  logic clk = 1'b0, rst = 1'b1, start = 1'b0;
  logic done, ready, idle;
  integer errors = 0, cycles = 0;
{declared}
{memories}
  {top}{SUFFIX} dut (
    .clk(clk), .rst(rst), .ap_start(start), .ap_done(done), .ap_ready(ready), .ap_idle(idle){ports}
  );

  always #5 clk = !clk;

  always @(posedge clk) begin
    if (!rst) cycles <= cycles + 1;
    if (done && ready) begin
      if (errors == 0) $display("PASSED in %0d cycles", cycles);
      else $display("FAILED: %0d beats differ", errors);
      $finish;
    end else if (cycles == {most_cycles}) begin
      $display("FAILED: not done after %0d cycles, idle is %0d", cycles, idle);
      $finish;
    end
  end

  initial begin
{tables}
    repeat (4) @(negedge clk);
    rst = 1'b0;
    start = 1'b1;
  end
endmodule
"""


def _ports(inputs: int, outputs: int, weights: int) -> str:
    """Return the ports of the instance, after those of its control."""
    found = [
        f".s{i}_tdata(s{i}_beats[s{i}_count]), .s{i}_tvalid(s{i}_valid), .s{i}_tready(s{i}_ready)"
        for i in range(inputs)
    ] + [
        f".m{i}_tdata(m{i}_data), .m{i}_tvalid(m{i}_valid), .m{i}_tready(1'b1)"
        for i in range(outputs)
    ]
    memories = "".join(memory_ports(at) for at in range(weights))
    return "".join(f",\n    {one}" for one in found) + memories


def _input(one: Counted) -> str:
    i, bits, last = one.port.number, one.port.bits, one.beats
    return f"""
  logic [{bits - 1}:0] s{i}_beats [0:{last}];
  integer s{i}_count = 0;
  wire s{i}_valid = !rst && s{i}_count < {last};
  wire s{i}_ready;
  always @(posedge clk) if (s{i}_valid && s{i}_ready) s{i}_count <= s{i}_count + 1;"""


def _output(one: Counted) -> str:
    i, bits, last = one.port.number, one.port.bits, one.beats
    return f"""
  logic [{bits - 1}:0] m{i}_beats [0:{last}];
  integer m{i}_count = 0;
  wire [{bits - 1}:0] m{i}_data;
  wire m{i}_valid;
  always @(posedge clk)
    if (m{i}_valid) begin
      if (m{i}_data !== m{i}_beats[m{i}_count]) begin
        $display("output {i}, beat %0d: %h, expected %h",
                 m{i}_count, m{i}_data, m{i}_beats[m{i}_count]);
        errors <= errors + 1;
      end
      m{i}_count <= m{i}_count + 1;
    end"""


def _table(side: str, one: Counted, words: Array) -> str:
    """Return the initial content of memory; one more beat follows, which is never read."""
    name, bits = f"{side}{one.port.number}_beats", one.port.bits
    rows = [int.from_bytes(row.tobytes(), "little") for row in words] + [0]
    return "\n".join(
        f"    {name}[{n}] = {bits}'h{row % (1 << bits):x};" for n, row in enumerate(rows)
    )
