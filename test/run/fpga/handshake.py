"""CIRCT's route from loops to dynamically scheduled circuits (`handshake`), for comparison.

The loops of a product come from upstream MLIR; each op becomes a unit that waits for its operands.
Memories are outside and answer in the next cycle. Buffers stand where cycles need them, the fastest
of CIRCT's strategies here (26,723 cycles for 16³ products; on all channels: 196,051).
"""

import ctypes
import io
from typing import Any

import numpy as np
import pycde.circt as circt
from pycde.circt import ir, passmanager
from torch_mlir import ir as upstream
from torch_mlir import passmanager as upstream_passes

from braid.lowering.fpga.rtl.simulate import loaded
from braid.lowering.fpga.rtl.verilate import shared_library

SIZE = 16
_PRODUCT = """
func.func @product(%a: memref<16x16xi32>, %b: memref<16x16xi32>, %c: memref<16x16xi32>) {
  linalg.matmul ins(%a, %b : memref<16x16xi32>, memref<16x16xi32>)
      outs(%c : memref<16x16xi32>)
  return
}"""
_LOOPS = (
    "func.func(convert-linalg-to-affine-loops,affine-scalrep)",
    "lower-affine",
    "convert-scf-to-cf",
    "canonicalize",
    "cse",
)
_UNITS = (
    "flatten-memref",
    "func.func(handshake-legalize-memrefs)",
    "canonicalize",
    "lower-cf-to-handshake",
    "handshake-lower-extmem-to-hw",
    "handshake.func(canonicalize,handshake-materialize-forks-sinks,canonicalize)",
    "handshake.func(handshake-insert-buffers{strategy=cycles buffer-size=2})",
    "handshake.func(canonicalize)",
    "lower-handshake-to-hw",
    "canonicalize",
    "lower-esi-ports",
    "lower-esi-to-physical",
    "lower-esi-to-hw",
    "canonicalize",
    "hw.module(lower-seq-hlmem)",
    "hw-memory-sim",
    "hw-flatten-io",
    "lower-seq-to-sv",
    "hw.module(hw-cleanup,hw-legalize-modules)",
    "canonicalize",
    "hw.module(prettify-verilog)",
)
_DRIVER = """
#include "Vproduct.h"
#include "verilated.h"
#include <cstdint>

// A port that reads: the answer to an address is there a cycle later, and stays until it is taken.
struct Load {
  const int32_t *memory;
  bool pending = false;
  uint32_t data = 0;
};

extern "C" __attribute__((visibility("default")))
int64_t multiply(const int32_t *a, const int32_t *b, int32_t *c, int64_t most) {
  VerilatedContext context;
  Vproduct m(&context);
  Load load[3] = {{a}, {b}, {c}};
  bool stored = false, start = true, done = false;
  int64_t cycles = 0;
  auto tick = [&] { m.clock = 1; m.eval(); m.clock = 0; m.eval(); };
  m.clock = 0; m.reset = 1; m.in3_valid = 0; m.out0_ready = 1;
  for (int i = 0; i < 4; i++) tick();
  m.reset = 0;
  for (; !done && cycles < most; cycles++) {
    m.in3_valid = start;
#define GIVE(i) m.in##i##_ld0_data = load[i].data; m.in##i##_ld0_data_valid = load[i].pending;
    GIVE(0) GIVE(1) GIVE(2)
    m.in2_st0_done_valid = stored;
    m.eval();
#define ACCEPT(i) m.in##i##_ld0_addr_ready = !load[i].pending || m.in##i##_ld0_data_ready;
    ACCEPT(0) ACCEPT(1) ACCEPT(2)
    m.in2_st0_ready = !stored || m.in2_st0_done_ready;
    m.eval();
    const bool stores = m.in2_st0_valid && m.in2_st0_ready;
    const unsigned to = m.in2_st0_address;
    const int32_t word = int32_t(m.in2_st0_data);
    const bool started = start && m.in3_ready;
    done = m.out0_valid;
#define TAKE(i) \\
    const bool asked##i = m.in##i##_ld0_addr_valid && m.in##i##_ld0_addr_ready; \\
    const unsigned at##i = m.in##i##_ld0_addr; \\
    if (load[i].pending && m.in##i##_ld0_data_ready) load[i].pending = false;
    TAKE(0) TAKE(1) TAKE(2)
    if (stored && m.in2_st0_done_ready) stored = false;
    tick();
    if (started) start = false;
#define ASK(i) if (asked##i) { load[i].pending = true; load[i].data = load[i].memory[at##i]; }
    ASK(0) ASK(1) ASK(2)
    if (stores) { stored = true; c[to] = word; }
  }
  m.final();
  return done ? cycles : -1;
}
"""


def _loops() -> str:
    with upstream.Context():
        module = upstream.Module.parse(_PRODUCT)
        passes = f"builtin.module({','.join(_LOOPS)})"
        upstream_passes.PassManager.parse(passes).run(module.operation)
        return str(module)


def _verilog(loops: str) -> str:
    context: Any = ir.Context()
    circt.register_dialects(context)
    with context, ir.Location.unknown():
        # A pass loads the dialects that it makes ops of; those of memory are not registered.
        empty = ir.Module.parse("module {}")
        passmanager.PassManager.parse("builtin.module(flatten-memref)").run(empty.operation)
        module = ir.Module.parse(loops)
        passes = f"builtin.module({','.join(_UNITS)})"
        passmanager.PassManager.parse(passes).run(module.operation)
        module.operation.attributes["circt.loweringOptions"] = ir.StringAttr.get(
            "disallowLocalVariables,disallowPackedStructAssignments"
        )
        text = io.StringIO()
        circt.export_verilog(module, text)
        return text.getvalue()


def product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a @ b of [16, 16] in i32, and the cycles from start to end."""
    multiply = loaded(shared_library("product", _verilog(_loops()), _DRIVER)).multiply
    multiply.restype = ctypes.c_int64
    given = [np.ascontiguousarray(one, np.int32) for one in (a, b)]
    result = np.zeros((SIZE, SIZE), np.int32)
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (*given, result)]
    return result, int(multiply(*pointers, ctypes.c_int64(1_000_000)))
