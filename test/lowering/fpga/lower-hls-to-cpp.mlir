// A design becomes a project for Vitis HLS, which a C++ compiler takes too.
// RUN: rm -rf %t && %braid-opt %s -p 'convert-braid-to-hls{function=product},select-channel-depths,lower-hls-to-cpp{output=%t part=xc7z020-clg400-1 clock=5}' -o /dev/null
// RUN: FileCheck %s --input-file %t/product.cpp
// RUN: FileCheck %s --input-file %t/hls.tcl --check-prefix=TCL
// RUN: make -s -C %t simulate && test -f %t/libproduct.so
// RUN: not %braid-opt %s -p 'lower-hls-to-cpp{output=%t}' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'convert-braid-to-hls{function=product},lower-hls-to-cpp{output=/dev/null/x}' 2>&1 | FileCheck %s --check-prefix=WHERE

// NONE: error: 0 designs in the module, expected one
// WHERE: /dev/null/x{{.*}}error: cannot write the design

// CHECK: struct beat_4xi8 {
// CHECK: void source0(hls::stream<beat_4xi8> &in0, hls::stream<beat_4xi8> &out0)
// CHECK: void stage0(hls::stream<beat_4xi8> &in0, hls::stream<beat_2xi32> &out0)
// CHECK: #pragma HLS ARRAY_PARTITION variable=pixels0 complete dim=0
// CHECK: for (int it = 0; it < 4; it++) {
// CHECK: #pragma HLS PIPELINE II=1
// CHECK: extern "C" void product(hls::stream<beat_4xi8> &s0, hls::stream<beat_2xi32> &m0)
// CHECK: #pragma HLS INTERFACE axis port=s0
// CHECK: #pragma HLS DATAFLOW
// CHECK: hls::stream<beat_4xi8> c0("c0");
// CHECK: #pragma HLS STREAM variable=c0 depth={{[0-9]+}}
// CHECK: stage0(c0, c1);
// TCL: set_top product
// TCL: set_part xc7z020-clg400-1
// TCL: create_clock -period 5.0
func.func @product(%x: tensor<4x4xi8>) -> tensor<4x2xi32> {
  %w = braid.constant {value = dense<[[1, -2], [3, 4], [5, 6], [-7, 8]]> : tensor<4x2xi8>} : tensor<4x2xi8>
  %y = braid.matmul %x, %w {accumulator = i32} : (tensor<4x4xi8>, tensor<4x2xi8>) -> tensor<4x2xi32>
  func.return %y : tensor<4x2xi32>
}
