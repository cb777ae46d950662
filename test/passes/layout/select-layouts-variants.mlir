// RUN: %braid-opt %s -p select-layouts | filecheck %s

// Variants of one model share their weights: the one for 64 rows stores "w" in blocks, and that for
// one row reads it so, since 0.1 us less in row-major order is not worth a copy of 4 MiB. What
// it gains with "v", a second, is.
// CHECK-LABEL: @main_0
// CHECK:       key = "w"
// CHECK:       operands = ["ab", "Ba16b"]
// CHECK:       key = "v"
// CHECK:       operands = ["ab", "ab"]
// CHECK-LABEL: @main_1
// CHECK:       key = "w"
// CHECK:       operands = ["ab", "Ba16b"]
// CHECK:       key = "v"
// CHECK:       operands = ["ab", "Ba16b"]
module {
  func.func @main_0(%x: tensor<1x1024xf32>) -> tensor<1x1024xf32> attributes {braid.variant = {n = 1 : i64}} {
    %w = braid.parameter {key = "w"} : tensor<1024x1024xf32>
    %0 = braid.opaque "product"(%x, %w) {layouts = [{operands = ["ab", "Ba16b"], results = ["ab"], cost = 1.1e-6 : f64}, {operands = ["ab", "ab"], results = ["ab"], cost = 1.0e-6 : f64}]} : (tensor<1x1024xf32>, tensor<1024x1024xf32>) -> tensor<1x1024xf32>
    %v = braid.parameter {key = "v"} : tensor<1024x1024xf32>
    %1 = braid.opaque "product"(%0, %v) {layouts = [{operands = ["ab", "Ba16b"], results = ["ab"], cost = 2.0 : f64}, {operands = ["ab", "ab"], results = ["ab"], cost = 1.0 : f64}]} : (tensor<1x1024xf32>, tensor<1024x1024xf32>) -> tensor<1x1024xf32>
    func.return %1 : tensor<1x1024xf32>
  }
  func.func @main_1(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> attributes {braid.variant = {n = 64 : i64}} {
    %w = braid.parameter {key = "w"} : tensor<1024x1024xf32>
    %0 = braid.opaque "product"(%x, %w) {layouts = [{operands = ["ab", "ab"], results = ["ab"], cost = 1.1e-6 : f64}, {operands = ["ab", "Ba16b"], results = ["ab"], cost = 1.0e-6 : f64}]} : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
    %v = braid.parameter {key = "v"} : tensor<1024x1024xf32>
    %1 = braid.opaque "product"(%0, %v) {layouts = [{operands = ["ab", "ab"], results = ["ab"], cost = 2.0 : f64}, {operands = ["ab", "Ba16b"], results = ["ab"], cost = 1.0 : f64}]} : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
    func.return %1 : tensor<64x1024xf32>
  }
}
