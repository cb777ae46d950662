"""The C++ that drives a verilated design: streams in and out, with stalls, cycle by cycle."""

from collections.abc import Sequence

from braid.lowering.fpga.rtl.ports import Port

SYMBOL = "braid_rtl_run"
"""`int64_t run(const uint32_t *const *in, uint32_t *const *out, const int64_t *beats_in,
const int64_t *beats_out, int64_t valid, int64_t ready, uint64_t seed, int64_t most)`.

Beats are of whole 32-bit words, the lowest bits first. `valid` and `ready` are the percent of
cycles in which a beat is offered or accepted. The result is the number of cycles from the first one
to that of the last beat that comes out, and -1 where there are more than `most`."""


def harness(top: str, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """The source."""
    puts = "\n".join(_put(port) for port in inputs)
    takes = "\n".join(_take(port) for port in outputs)
    return f"""#include "V{top}.h"
#include "verilated.h"
#include <cstdint>

namespace {{
struct Random {{
  uint64_t state;
  bool below(int64_t percent) {{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return int64_t((state >> 33) % 100) < percent;
  }}
}};
}}  // namespace

extern "C" int64_t {SYMBOL}(const uint32_t *const *in, uint32_t *const *out,
                            const int64_t *beats_in, const int64_t *beats_out, int64_t valid,
                            int64_t ready, uint64_t seed, int64_t most) {{
  VerilatedContext context;
  V{top} top(&context);
  Random random{{seed * 2654435769u + 88172645463325252u}};
  int64_t done_in[{len(inputs)}] = {{}}, done_out[{len(outputs)}] = {{}};
  bool offered[{len(inputs)}] = {{}};
  top.rst = 1;
{_each(inputs, "  top.s{i}_tvalid = 0;")}
{_each(outputs, "  top.m{i}_tready = 0;")}
  for (int i = 0; i < 3; ++i) {{
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  }}
  top.rst = 0;
  int64_t last = 0;
  for (int64_t cycle = 0; cycle < most; ++cycle) {{
    top.clk = 0;
{puts}
{_each(outputs, "    top.m{i}_tready = random.below(ready);")}
    top.eval();
{_accepted(inputs)}
{takes}
    bool finished = true;
    for (int i = 0; i < {len(outputs)}; ++i) finished &= done_out[i] == beats_out[i];
    top.clk = 1;
    top.eval();
    last = cycle + 1;
    if (finished) return last;
  }}
  return -1;
}}
"""


def _each(ports: Sequence[Port], text: str) -> str:
    return "\n".join(text.format(i=port.number) for port in ports)


def _put(port: Port) -> str:
    """A beat that is offered stays so until it is accepted."""
    i, words = port.number, port.words
    data = f"in[{i}] + {words} * done_in[{i}]"
    if port.bits <= 32:
        value = f"top.s{i}_tdata = word[0];"
    elif port.bits <= 64:
        value = f"top.s{i}_tdata = word[0] | uint64_t(word[1]) << 32;"
    else:
        value = f"for (int w = 0; w < {words}; ++w) top.s{i}_tdata[w] = word[w];"
    left = f"done_in[{i}] < beats_in[{i}]"
    return f"""    offered[{i}] = offered[{i}] || ({left} && random.below(valid));
    top.s{i}_tvalid = offered[{i}];
    if (offered[{i}]) {{
      const uint32_t *word = {data};
      {value}
    }}"""


def _accepted(inputs: Sequence[Port]) -> str:
    return "\n".join(
        f"    if (offered[{port.number}] && top.s{port.number}_tready) {{\n"
        f"      ++done_in[{port.number}];\n      offered[{port.number}] = false;\n    }}"
        for port in inputs
    )


def _take(port: Port) -> str:
    i, words = port.number, port.words
    if port.bits <= 32:
        value = f"word[0] = top.m{i}_tdata;"
    elif port.bits <= 64:
        value = f"word[0] = uint32_t(top.m{i}_tdata); word[1] = uint32_t(top.m{i}_tdata >> 32);"
    else:
        value = f"for (int w = 0; w < {words}; ++w) word[w] = top.m{i}_tdata[w];"
    return f"""    if (top.m{i}_tvalid && top.m{i}_tready && done_out[{i}] < beats_out[{i}]) {{
      uint32_t *word = out[{i}] + {words} * done_out[{i}];
      {value}
      ++done_out[{i}];
    }}"""
