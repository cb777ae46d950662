// RUN: %braid compile %s --target gpu-emulated --emit=gpu | FileCheck %s --check-prefix=GPU
// RUN: %braid compile %s --target gpu-emulated --emit=nvvm | FileCheck %s --check-prefix=NVVM
// RUN: %braid compile %s --target gpu-emulated --gpu-arch sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %braid compile %s --target gpu-emulated --emit=sass | FileCheck %s --check-prefix=SASS
// RUN: not %braid compile %s --target gpu-emulated --emit=linalg 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not %braid compile %s --target gpu-emulated --gpu-arch sm_12 --emit=ptx 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: env BRAID_CUDA_LIBRARY=/nowhere not %braid run %s --target gpu-a100 --random 2>&1 | FileCheck %s --check-prefix=CUDA

// A warp a row of the reduction, which adds up by shuffles.
func.func @main(%x: tensor<300x8xf32> {braid.name = "x"}) -> (tensor<300xf32> {braid.name = "y"}) {
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 1>}
      : (tensor<300x8xf32>) -> tensor<300x1xf32>
  %y = braid.reshape %0 : (tensor<300x1xf32>) -> tensor<300xf32>
  func.return %y : tensor<300xf32>
}

// GPU:         gpu.func @kernel_0_0(%{{.*}}: memref<300x8xf32>
// GPU:           gpu.thread_id x
// GPU:           gpu.shuffle xor

// NVVM:      llvm.func @kernel_0_0
// NVVM:        nvvm.shfl.sync bfly

// PTX:       .target sm_90a
// PTX:       .visible .entry kernel_0_0(
// PTX:       shfl.sync.bfly.b32

// SASS:      SHFL.BFLY

// STAGE: error: backend 'gpu' has no stage 'linalg' to emit, only 'gpu', 'nvvm', 'ptx', 'cubin', 'sass'
// ARCH: error: 'sm_12' is not the architecture of a GPU
// CUDA: error: the model needs device 'gpu:0', which is missing: BRAID_CUDA_LIBRARY names no CUDA driver
