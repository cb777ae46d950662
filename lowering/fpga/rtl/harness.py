"""The C++ that drives a verilated design: streams in and out, with stalls, cycle by cycle."""

from collections.abc import Sequence

from braid.lowering.fpga.rtl.ports import Port

SYMBOL = "braid_rtl_run"
"""`int64_t run(const uint32_t *const *in, uint32_t *const *out, const int64_t *beats_in,
const int64_t *beats_out, int64_t valid, int64_t ready, uint64_t seed, int64_t most,
const char *trace)`.

Beats are of whole 32-bit words, the lowest bits first. `valid` and `ready` are the percent of
cycles in which a beat is offered or accepted. The result is the number of cycles from the first one
to that of the last beat that comes out, and -1 where there are more than `most`. The waveforms go
to the file `trace`, where it is not NULL and the design was made to be traced."""

_STREAMS = """#include "verilated.h"
#include <cstdint>
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {
struct Random {
  uint64_t state;
  bool below(int64_t percent) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return int64_t((state >> 33) % 100) < percent;
  }
};

template <typename T> void put(T &signal, const uint32_t *word) {
  uint64_t low = word[0];
  if constexpr (sizeof(T) > 4) low |= uint64_t(word[1]) << 32;
  signal = T(low);
}
template <std::size_t N> void put(VlWide<N> &signal, const uint32_t *word) {
  for (std::size_t w = 0; w < N; ++w) signal[w] = word[w];
}
template <typename T> void get(const T &signal, uint32_t *word) {
  word[0] = uint32_t(signal);
  if constexpr (sizeof(T) > 4) word[1] = uint32_t(uint64_t(signal) >> 32);
}
template <std::size_t N> void get(const VlWide<N> &signal, uint32_t *word) {
  for (std::size_t w = 0; w < N; ++w) word[w] = signal[w];
}

// A beat that is offered stays so until it is accepted.
struct Source {
  const uint32_t *beats;
  int64_t words, count, done = 0;
  bool offered = false;
  template <typename T> void drive(T &data, CData &valid, bool now) {
    offered = offered || (done < count && now);
    valid = offered;
    if (offered) put(data, beats + words * done);
  }
  void accept(bool ready) {
    if (offered && ready) {
      ++done;
      offered = false;
    }
  }
};

struct Sink {
  uint32_t *beats;
  int64_t words, count, done = 0;
  template <typename T> void take(const T &data, bool there) {
    if (there && done < count) get(data, beats + words * done++);
  }
};
}  // namespace
"""


def harness(top: str, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """The source."""
    sources = ", ".join(f"{{in[{p.number}], {p.words}, beats_in[{p.number}]}}" for p in inputs)
    sinks = ", ".join(f"{{out[{p.number}], {p.words}, beats_out[{p.number}]}}" for p in outputs)
    drive = "source[{i}].drive(top.s{i}_tdata, top.s{i}_tvalid, random.below(valid));"
    take = "sink[{i}].take(top.m{i}_tdata, top.m{i}_tvalid && top.m{i}_tready);"
    return f"""#include "V{top}.h"
{_STREAMS}
extern "C" int64_t {SYMBOL}(const uint32_t *const *in, uint32_t *const *out,
                            const int64_t *beats_in, const int64_t *beats_out, int64_t valid,
                            int64_t ready, uint64_t seed, int64_t most, const char *trace) {{
  VerilatedContext context;
#if VM_TRACE
  context.traceEverOn(trace != nullptr);
#endif
  V{top} top(&context);
  Random random{{seed * 2654435769u + 88172645463325252u}};
  Source source[] = {{{sources}}};
  Sink sink[] = {{{sinks}}};
#if VM_TRACE
  VerilatedVcdC file;
  if (trace) {{
    top.trace(&file, 99);
    file.open(trace);
  }}
#endif
  uint64_t time = 0;
  auto dump = [&] {{
#if VM_TRACE
    if (trace) file.dump(time++);
#endif
  }};
  auto rise = [&] {{
    dump();
    top.clk = 1;
    top.eval();
    dump();
    top.clk = 0;
  }};
  top.rst = 1;
  top.clk = 0;
{_each(inputs, "  top.s{i}_tvalid = 0;")}
{_each(outputs, "  top.m{i}_tready = 0;")}
  for (int i = 0; i < 3; ++i) {{
    top.eval();
    rise();
  }}
  top.rst = 0;
  for (int64_t cycle = 0; cycle < most; ++cycle) {{
{_each(inputs, f"    {drive}")}
{_each(outputs, "    top.m{i}_tready = random.below(ready);")}
    top.eval();
{_each(inputs, "    source[{i}].accept(top.s{i}_tready);")}
{_each(outputs, f"    {take}")}
    bool finished = true;
    for (const Sink &one : sink) finished &= one.done == one.count;
    rise();
    if (finished) return cycle + 1;
  }}
  return -1;
}}
"""


def _each(ports: Sequence[Port], text: str) -> str:
    return "\n".join(text.format(i=port.number) for port in ports)
