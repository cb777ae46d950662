// A product by CUTLASS 3.x: wgmma and copies of tensors, warp-specialized, blocks stay.
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
namespace c = cutlass;
using In = c::bfloat16_t;
using Sum = float;
constexpr int aligned = 128 / c::sizeof_bits<In>::value;
using Tile = cute::Shape<cute::Int<ROWS>, cute::Int<COLUMNS>, cute::Int<DEPTH>>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using End = typename c::epilogue::collective::CollectiveBuilder<
    c::arch::Sm90, c::arch::OpClassTensorOp, Tile, Cluster,
    c::epilogue::collective::EpilogueTileAuto, Sum, Sum, void, c::layout::RowMajor, aligned, In,
    c::layout::RowMajor, aligned, c::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Main = typename c::gemm::collective::CollectiveBuilder<
    c::arch::Sm90, c::arch::OpClassTensorOp, In, c::layout::RowMajor, aligned, In,
    c::layout::ColumnMajor, aligned, Sum, Tile, Cluster, cute::Int<STAGES>,
    c::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel = c::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Main, End>;
template __global__ void c::device_kernel<Kernel>(
    CUTLASS_GRID_CONSTANT const typename Kernel::Params);
