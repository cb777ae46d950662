// RUN: %braid-opt %s -p split-complex-numbers --split-input-file --verify-diagnostics

func.func @no_parts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = "stablehlo.complex"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  // expected-error @+1 {{'stablehlo.floor': it is applied to complex numbers}}
  %w = "stablehlo.floor"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %y = "stablehlo.real"(%w) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @length(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'stablehlo.fft': its lengths are [5], and the last extents [4], expected [5]}}
  %z = "stablehlo.fft"(%x) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 5>}>
    : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  %y = "stablehlo.real"(%z) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

func.func @kind(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.fft': its type is FFT, but it takes tensor<4xf32> to tensor<4xcomplex<f32>>}}
  %z = "stablehlo.fft"(%x) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>}>
    : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %y = "stablehlo.real"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @results(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = "stablehlo.complex"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  // expected-error @+1 {{'stablehlo.real': its fields, regions and types do not fit together}}
  %y:2 = "stablehlo.real"(%z) : (tensor<4xcomplex<f32>>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %y#0 : tensor<4xf32>
}
