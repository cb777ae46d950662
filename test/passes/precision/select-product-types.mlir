// RUN: sed s/CPU/znver4/ %s | %braid-opt -p select-product-types --remarks 2>&1 | filecheck %s
// RUN: sed s/CPU/znver4/ %s | %braid-opt -p 'select-product-types{precision=bf16}' --remarks 2>&1 | filecheck %s --check-prefix=ALL
// RUN: sed s/CPU/haswell/ %s | %braid-opt -p select-product-types --remarks 2>&1 | filecheck %s --check-prefix=AVX2

// A product by a weight that the model says in bf16 is made so where the CPU has an instruction for
// it, whatever was decided before; one by a value is not, nor one that the model says in f32, unless all are asked for.
// CHECK:       [select-product-types] 1 of 1 products are computed in bf16
// CHECK-LABEL: @main
// CHECK:       braid.matmul %x, %w {braid.product_type = bf16}
// CHECK-NEXT:  braid.matmul %{{.*}}, %v :
// CHECK-NEXT:  braid.matmul %{{.*}}, %z :

// ALL:       [select-product-types] 2 of 2 products are computed in bf16
// ALL:       braid.matmul %x, %w {braid.product_type = bf16}
// ALL-NEXT:  braid.matmul %{{.*}}, %v {braid.product_type = bf16}
// ALL-NEXT:  braid.matmul %{{.*}}, %z :

// AVX2:      [select-product-types] 0 of 1 products are computed in bf16
// AVX2-NOT:  braid.product_type
module attributes {braid.target = #braid.target<"host", {cpu = "CPU"}>} {
func.func @main(%x: tensor<64x512xf32>, %z: tensor<512x512xf32>) -> tensor<64x512xf32> {
  %w = braid.parameter {key = "w"} : tensor<512x512xf32>
  %v = braid.parameter {key = "v"} : tensor<512x512xf32>
  %0 = braid.matmul %x, %w {braid.model_type = bf16, braid.product_type = bf16} : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %1 = braid.matmul %0, %v : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %2 = braid.matmul %1, %z {braid.model_type = bf16} : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  func.return %2 : tensor<64x512xf32>
}
}
