// RUN: %braid-opt %s -p split-complex-numbers | FileCheck %s

// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    [[A:%.*]] = "stablehlo.add"(%a, %b)
// CHECK-NEXT:    [[B:%.*]] = "stablehlo.add"(%b, %a)
// CHECK-NEXT:    func.return [[A]], [[B]]
func.func @sum(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %z = "stablehlo.complex"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %w = "stablehlo.complex"(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %s = "stablehlo.add"(%z, %w)
    : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %x = "stablehlo.real"(%s) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %y = "stablehlo.imag"(%s) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  func.return %x, %y : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @square
// CHECK-DAG:     [[AA:%.*]] = "stablehlo.multiply"(%a, %a)
// CHECK-DAG:     [[BB:%.*]] = "stablehlo.multiply"(%b, %b)
// CHECK:         [[REAL:%.*]] = "stablehlo.subtract"([[AA]], [[BB]])
// CHECK:         func.return [[REAL]]
func.func @square(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %z = "stablehlo.complex"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %s = "stablehlo.multiply"(%z, %z)
    : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %x = "stablehlo.real"(%s) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// A loop carries both parts.
// CHECK-LABEL: func.func @loop
// CHECK:         [[R:%.*]], [[I:%.*]] = "stablehlo.while"(%a, %a) ({
// CHECK-NEXT:    ^{{.*}}([[P:%.*]]: tensor<f32>, {{%.*}}: tensor<f32>):
// CHECK-NEXT:      [[GO:%.*]] = "stablehlo.is_finite"([[P]])
// CHECK-NEXT:      "stablehlo.return"([[GO]])
// CHECK:           [[X:%.*]] = "stablehlo.add"
// CHECK-NEXT:      [[Y:%.*]] = "stablehlo.add"
// CHECK-NEXT:      "stablehlo.return"([[X]], [[Y]]) : (tensor<f32>, tensor<f32>) -> ()
// CHECK:         func.return [[I]]
func.func @loop(%a: tensor<f32>) -> tensor<f32> {
  %z = "stablehlo.complex"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<complex<f32>>
  %w = "stablehlo.while"(%z) ({
  ^bb0(%p: tensor<complex<f32>>):
    %r = "stablehlo.real"(%p) : (tensor<complex<f32>>) -> tensor<f32>
    %go = "stablehlo.is_finite"(%r) : (tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%go) : (tensor<i1>) -> ()
  }, {
  ^bb0(%p: tensor<complex<f32>>):
    %s = "stablehlo.add"(%p, %p)
      : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
    "stablehlo.return"(%s) : (tensor<complex<f32>>) -> ()
  }) : (tensor<complex<f32>>) -> tensor<complex<f32>>
  %y = "stablehlo.imag"(%w) : (tensor<complex<f32>>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// Half of the spectrum of a real signal.
// CHECK-LABEL: func.func @spectrum
// CHECK:         [[ONE:%.*]] = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK:         [[PARTS:%.*]] = braid.fft [[ONE]] {kind = "rfft", dim = 0 : i64, length = 4 : i64} : (tensor<4x1xf32>) -> tensor<3x2xf32>
// CHECK:         [[REAL:%.*]] = "stablehlo.slice"([[PARTS]]) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 3, 1>
// CHECK:         [[Y:%.*]] = "stablehlo.reshape"([[REAL]]) : (tensor<3x1xf32>) -> tensor<3xf32>
// CHECK:         func.return [[Y]]
func.func @spectrum(%x: tensor<4xf32>) -> tensor<3xf32> {
  %z = "stablehlo.fft"(%x) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 4>}>
    : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  %y = "stablehlo.real"(%z) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// CHECK: func.func @ports(%{{[^:]+}}: tensor<4xf32> {braid.name = "input0.real"}
// CHECK-SAME: {braid.name = "input0.imag"}
// CHECK-SAME: -> (tensor<4xf32> {braid.name = "output0.real"}, tensor<4xf32> {braid.name = "output0.imag"})
func.func @ports(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  func.return %z : tensor<4xcomplex<f32>>
}
