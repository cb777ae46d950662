"""The C++ that drives a verilated design: streams in and out, with stalls, cycle by cycle."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.rtl.ports import StreamPort
from braid.lowering.fpga.rtl.weights_module import memory_words

SYMBOL = "braid_rtl_run"
"""`int64_t run(const uint32_t *const *in, uint32_t *const *out, const int64_t *beats_in,
const int64_t *beats_out, int64_t valid, int64_t ready, int64_t answers, uint64_t seed,
int64_t most, const char *trace)`.

Beats are of whole 32-bit words, the lowest bits first. `valid` and `ready` are the percent of
cycles in which a beat is offered or accepted. The memories accept a request, and give a word, in
`answers` percent of cycles, up to four times as late as was planned if that is not in all. The
result is the number of cycles up to the last output beat, -1 where there are more than `most`, and
-2 where a request breaks a rule of AXI4. The waveforms go to the file `trace`, where it is not NULL
and the design was made to be traced."""

_STREAMS = """#include "verilated.h"
#include <cstdint>
#include <deque>
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {
struct Random {
  uint64_t state;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 33;
  }
  bool below(int64_t percent) { return int64_t(next() % 100) < percent; }
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

// Answers requests in their order, each `latency` cycles after it at the earliest.
struct Memory {
  const uint32_t *words;
  int64_t words_each, count, latency;
  uint64_t base;
  struct Request {
    int64_t word, length, time;
  };
  std::deque<Request> pending;
  bool is_fair = true, asked = false;
  uint64_t address = 0, length = 0;
  template <typename T> void give(T &data, CData &valid, CData &ready, int64_t cycle, bool accepts,
                                  bool gives) {
    ready = accepts;
    valid = gives && !pending.empty() && pending.front().time <= cycle;
    if (valid) put(data, words + words_each * pending.front().word);
  }
  // What a clock edge takes; bytes of a word are 4 * words_each.
  void edge(bool valid, uint64_t ar, uint64_t len, uint64_t size, uint64_t burst, bool accepted,
            bool came, bool taken, int64_t time) {
    is_fair &= !asked || (valid && ar == address && len == length);
    asked = valid && !accepted;
    address = ar, length = len;
    if (valid && accepted) {
      const uint64_t bytes = 4 * words_each, first = ar - base, all = (len + 1) * bytes;
      is_fair &= ar >= base && burst == 1 && (uint64_t(1) << size) == bytes && len < 256;
      is_fair &= first % bytes == 0 && first + all <= uint64_t(count) * bytes;
      is_fair &= ar / 4096 == (ar + all - 1) / 4096;
      if (is_fair) pending.push_back({int64_t(first / bytes), int64_t(len + 1), time});
    }
    if (came && taken) {
      Request &first = pending.front();
      ++first.word;
      if (--first.length == 0) pending.pop_front();
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


_BASE = 0x1_0000_0000
"""The address of the first memory; the others follow at multiples of it."""


_CLOCK = """#if VM_TRACE
  VerilatedVcdC file;
  if (trace) {
    top.trace(&file, 99);
    file.open(trace);
  }
#endif
  uint64_t time = 0;
  auto dump = [&] {
#if VM_TRACE
    if (trace) file.dump(time++);
#endif
  };
  auto rise = [&] {
    dump();
    top.clk = 1;
    top.eval();
    dump();
    top.clk = 0;
  };
  top.rst = 1;
  top.clk = 0;
"""


def harness(
    top: str,
    inputs: Sequence[StreamPort],
    outputs: Sequence[StreamPort],
    weights: Sequence[WeightsOp] = (),
) -> str:
    """Return the source."""
    memories = [MemoryText(at, op) for at, op in enumerate(weights)]
    sources = ", ".join(f"{{in[{p.number}], {p.words}, beats_in[{p.number}]}}" for p in inputs)
    sinks = ", ".join(f"{{out[{p.number}], {p.words}, beats_out[{p.number}]}}" for p in outputs)
    return f"""#include "V{top}.h"
{_STREAMS}
{"".join(one.words() for one in memories)}
extern "C" __attribute__((visibility("default")))
int64_t {SYMBOL}(const uint32_t *const *in, uint32_t *const *out, const int64_t *beats_in,
                 const int64_t *beats_out, int64_t valid, int64_t ready, int64_t answers,
                 uint64_t seed, int64_t most, const char *trace) {{
  VerilatedContext context;
#if VM_TRACE
  context.traceEverOn(trace != nullptr);
#endif
  V{top} top(&context);
  Random random{{seed * 2654435769u + 88172645463325252u}};
  Source source[] = {{{sources}}};
  Sink sink[] = {{{sinks}}};
{"".join(one.declared() for one in memories)}
{_CLOCK}
{_each(inputs, "  top.s{i}_tvalid = 0;")}
{_each(outputs, "  top.m{i}_tready = 0;")}
  for (int i = 0; i < 3; ++i) {{
    top.eval();
    rise();
  }}
  top.rst = 0;
  for (int64_t cycle = 0; cycle < most; ++cycle) {{
{_cycle(inputs, outputs, memories)}
  }}
  return -1;
}}
"""


def _cycle(
    inputs: Sequence[StreamPort], outputs: Sequence[StreamPort], memories: Sequence["MemoryText"]
) -> str:
    """Return the code of a cycle."""
    drive = "source[{i}].drive(top.s{i}_tdata, top.s{i}_tvalid, random.below(valid));"
    take = "sink[{i}].take(top.m{i}_tdata, top.m{i}_tvalid && top.m{i}_tready);"
    fair = "".join(f" && memory{one.number}.is_fair" for one in memories)
    return f"""{_each(inputs, f"    {drive}")}
{_each(outputs, "    top.m{i}_tready = random.below(ready);")}
{"".join(one.gives() for one in memories)}
    top.eval();
{_each(inputs, "    source[{i}].accept(top.s{i}_tready);")}
{_each(outputs, f"    {take}")}
    bool finished = true;
    for (const Sink &one : sink) finished &= one.done == one.count;
{"".join(one.takes() for one in memories)}
    rise();
    if (!(true{fair})) return -2;
    if (finished) return cycle + 1;"""


@dataclass(frozen=True)
class MemoryText:
    """The text for the memory that has the words of `op`."""

    number: int
    op: WeightsOp

    def words(self) -> str:
        """Return the text of the content."""
        each = self.op.port.value.data // 32
        words = memory_words(self.op)
        numbers = (hex(word >> 32 * at & 0xFFFFFFFF) for word in words for at in range(each))
        return f"static const uint32_t words{self.number}[] = {{{', '.join(numbers)}}};\n"

    def declared(self) -> str:
        """Return the declarations before the first cycle."""
        each, latency = self.op.port.value.data // 32, self.op.latency.value.data
        at, base = self.number, _BASE * (1 + self.number)
        numbers = f"words{at}, {each}, {self.op.words}, {latency}, {base:#x}"
        return f"  Memory memory{at}{{{numbers}}};\n  top.weights{at}_base = {base:#x};\n"

    def gives(self) -> str:
        """Return the code of a cycle before the design is evaluated."""
        at = self.number
        port = f"top.m_axi{at}"
        return (
            f"    memory{at}.give({port}_rdata, {port}_rvalid, {port}_arready, cycle,"
            " random.below(answers), random.below(answers));\n"
        )

    def takes(self) -> str:
        """Return the code of a cycle after the design is evaluated."""
        at = self.number
        port, latency = f"top.m_axi{at}", f"memory{at}.latency"
        late = f"(answers < 100 ? int64_t(random.next() % uint64_t(3 * {latency} + 1)) : 0)"
        signals = ", ".join(f"{port}_{name}" for name in ("arvalid", "araddr", "arlen"))
        more = ", ".join(f"{port}_{name}" for name in ("arsize", "arburst", "arready"))
        data = f"{port}_rvalid, {port}_rready"
        return f"    memory{at}.edge({signals}, {more}, {data}, cycle + {latency} + {late});\n"


def _each(ports: Sequence[StreamPort], text: str) -> str:
    return "\n".join(text.format(i=port.number) for port in ports)
