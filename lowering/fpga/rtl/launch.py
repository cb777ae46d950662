"""The C++ by which the device plugin `rtl` launches a verilated design on tensors in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.lowering.fpga.rtl.harness import SYMBOL
from braid.lowering.fpga.rtl.ports import StreamPort
from braid.support.errors import UnsupportedError

MOST_CYCLES = 1 << 40
"""The most cycles of a launch; one that takes more is taken to hang."""

_MOVES = """
#include <cstring>
#include <vector>

namespace {
// Where lane l of beat b lies in memory: at `bytes` * (b / inner * outer_stride +
// b % inner * inner_stride + l * lane_stride).
struct Tensor {
  int64_t words, lanes, bytes, beats, inner, outer_stride, inner_stride, lane_stride;
  int64_t at(int64_t beat, int64_t lane) const {
    return bytes * (beat / inner * outer_stride + beat % inner * inner_stride + lane * lane_stride);
  }
  char *lane_of(std::vector<uint32_t> &words_of, int64_t beat, int64_t lane) const {
    return reinterpret_cast<char *>(words_of.data() + beat * words) + lane * bytes;
  }
  std::vector<uint32_t> room() const { return std::vector<uint32_t>(beats * words); }
  std::vector<uint32_t> read(const void *memory) const {
    std::vector<uint32_t> made = room();
    for (int64_t beat = 0; beat < beats; ++beat)
      for (int64_t lane = 0; lane < lanes; ++lane)
        std::memcpy(lane_of(made, beat, lane), static_cast<const char *>(memory) + at(beat, lane),
                    bytes);
    return made;
  }
  void write(void *memory, std::vector<uint32_t> &given) const {
    for (int64_t beat = 0; beat < beats; ++beat)
      for (int64_t lane = 0; lane < lanes; ++lane)
        std::memcpy(static_cast<char *>(memory) + at(beat, lane), lane_of(given, beat, lane),
                    bytes);
  }
};
"""


@dataclass(frozen=True)
class PortTensor:
    """A port and the tensor in memory that goes through it: that of `value`, stored as `stored`.

    The two have the same elements in the same order, and maybe other shapes: one is a view.
    """

    port: StreamPort
    value: SSAValue
    stored: SSAValue


def launch_source(
    function: str, clock: float, inputs: Sequence[PortTensor], outputs: Sequence[PortTensor]
) -> str:
    """Return the text after `harness`; see `device_rtl.c` for its exports.

    Raises UnsupportedError for tensors in blocked layouts.
    """
    tables = "\n".join(
        f"const Tensor {name}[] = {{{', '.join(map(_table, ports))}}};"
        for name, ports in (("reads", inputs), ("writes", outputs))
    )
    return f"""{_MOVES}
{tables}
}}  // namespace

#pragma GCC visibility push(default)
extern "C" {{
extern const char braid_rtl_function[] = "{function}";
extern const double braid_rtl_clock = {clock!r};

int64_t braid_rtl_launch(const void *const *inputs, void *const *outputs, const char *trace) {{
  std::vector<std::vector<uint32_t>> given, made;
  std::vector<const uint32_t *> in;
  std::vector<uint32_t *> out;
  std::vector<int64_t> beats_in, beats_out;
  for (const Tensor &one : reads) {{
    given.push_back(one.read(*inputs++));
    in.push_back(given.back().data());
    beats_in.push_back(one.beats);
  }}
  for (const Tensor &one : writes) {{
    made.push_back(one.room());
    out.push_back(made.back().data());
    beats_out.push_back(one.beats);
  }}
  int64_t cycles = {SYMBOL}(in.data(), out.data(), beats_in.data(), beats_out.data(), 100, 100,
                            100, 1, {MOST_CYCLES}, trace);
  for (std::size_t i = 0; i < made.size(); ++i) writes[i].write(outputs[i], made[i]);
  return cycles;
}}
}}
#pragma GCC visibility pop
"""


def _table(tensor: PortTensor) -> str:
    shape, port = shape_of(tensor.value), tensor.port
    strides = _strides(tensor)
    # Beats are rows of pixels of an image, or the rows of a matrix.
    if len(shape) == 4:
        beats, inner = shape[2] * shape[3], shape[3]
        outer_stride, inner_stride = strides[2:]
    else:
        beats, inner, outer_stride, inner_stride = shape[0], 1, strides[0], 0
    lanes, size = port.stream.lanes.data, port.dtype.itemsize
    numbers = (port.words, lanes, size, beats, inner, outer_stride, inner_stride, strides[1])
    return f"{{{', '.join(map(str, numbers))}}}"


def _strides(tensor: PortTensor) -> list[int]:
    """Return the strides of the dims of the value, in elements."""
    shape, layout = shape_of(tensor.value), layout_of(tensor.stored.type)
    order = range(len(shape))
    if not layout.is_row_major:
        if shape_of(tensor.stored) != shape or not layout.is_permutation:
            raise UnsupportedError(
                f"a tensor of shape {list(shape)} in the layout '{layout}' on an FPGA",
                hint="streams take no blocks, and views of what is row-major alone",
            )
        order = layout.permutation
    strides, size = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = size
        size *= shape[dim]
    return strides
