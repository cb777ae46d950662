// A product by CUTLASS 2.x: mma.sync, cp.async.
#include "cutlass/cutlass.h"
#include "cutlass/gemm/device/gemm.h"
namespace c = cutlass;
using Warp = c::gemm::GemmShape<64, 64, DEPTH>;
#ifdef BYTES
using In = int8_t; using Sum = int32_t; using Out = int32_t;
using Mma = c::gemm::GemmShape<16, 8, 32>;
#else
using In = c::bfloat16_t; using Sum = float; using Out = In;
using Mma = c::gemm::GemmShape<16, 8, 16>;
#endif
using End = c::epilogue::thread::LinearCombination<
    Out, 128 / c::sizeof_bits<Out>::value, Sum, Sum>;
using Gemm = c::gemm::device::Gemm<
    In, c::layout::RowMajor, In, c::layout::ColumnMajor, Out, c::layout::RowMajor, Sum,
    c::arch::OpClassTensorOp, c::arch::Sm80, c::gemm::GemmShape<ROWS, COLUMNS, DEPTH>, Warp, Mma,
    End, c::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGES>;
template __global__ void cutlass::Kernel<typename Gemm::GemmKernel>(
    typename Gemm::GemmKernel::Params);
