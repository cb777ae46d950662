"""LLVM IR of kernels, as it becomes PTX."""

from braid.lowering.gpu.codegen.ptx import device_ir, nvvm_text, optimized_ir
from test.run.gpu.conftest import gpu

# The assembly is in both branches: moved out of them, lanes would come that should not.
BRANCHES = """module { gpu.module @kernels {
  gpu.func @entry(%x: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %n = arith.constant 7 : index
    %z = arith.constant 0.0 : f32
    %c = arith.cmpi ult, %t, %n : index
    scf.if %c {
      llvm.inline_asm has_side_effects "fence.proxy.async;", "~{memory}" : () -> ()
      memref.store %z, %x[%t] : memref<64xf32>
    } else {
      llvm.inline_asm has_side_effects "fence.proxy.async;", "~{memory}" : () -> ()
      %v = memref.load %x[%n] : memref<64xf32>
      memref.store %v, %x[%t] : memref<64xf32>
    }
    gpu.return
  }
} }"""


def test_assembly_is_convergent_and_stays_where_it_is() -> None:
    translated = device_ir(nvvm_text(BRANCHES))
    calls = [line for line in translated.splitlines() if " asm sideeffect " in line]
    assert len(calls) == 2 and all(" convergent" in line for line in calls)
    assert optimized_ir(translated, gpu("sm_90a")).count(" asm sideeffect ") == 2
    movable = translated.replace(" convergent", "")
    assert optimized_ir(movable, gpu("sm_90a")).count(" asm sideeffect ") == 1
