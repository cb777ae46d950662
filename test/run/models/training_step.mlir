// Gradients of eight linear layers with tanh, by `python -m benchmarks.training --layers 8 --width 16
// --batch 512 --onnx step.onnx` and `braid import`; the constant is the derivative of the mean.
builtin.module {
  func.func @main(%0: tensor<512x16xf32> {braid.name = "x"}, %1: tensor<16x16xf32> {braid.name = "p0"}, %2: tensor<16xf32> {braid.name = "p1"}, %3: tensor<16x16xf32> {braid.name = "p2"}, %4: tensor<16xf32> {braid.name = "p3"}, %5: tensor<16x16xf32> {braid.name = "p4"}, %6: tensor<16xf32> {braid.name = "p5"}, %7: tensor<16x16xf32> {braid.name = "p6"}, %8: tensor<16xf32> {braid.name = "p7"}, %9: tensor<16x16xf32> {braid.name = "p8"}, %10: tensor<16xf32> {braid.name = "p9"}, %11: tensor<16x16xf32> {braid.name = "p10"}, %12: tensor<16xf32> {braid.name = "p11"}, %13: tensor<16x16xf32> {braid.name = "p12"}, %14: tensor<16xf32> {braid.name = "p13"}, %15: tensor<16x16xf32> {braid.name = "p14"}, %16: tensor<16xf32> {braid.name = "p15"}) -> (tensor<16x16xf32> {braid.name = "mm_22"}, tensor<16xf32> {braid.name = "view_7"}, tensor<16x16xf32> {braid.name = "mm_20"}, tensor<16xf32> {braid.name = "view_6"}, tensor<16x16xf32> {braid.name = "mm_18"}, tensor<16xf32> {braid.name = "view_5"}, tensor<16x16xf32> {braid.name = "mm_16"}, tensor<16xf32> {braid.name = "view_4"}, tensor<16x16xf32> {braid.name = "mm_14"}, tensor<16xf32> {braid.name = "view_3"}, tensor<16x16xf32> {braid.name = "mm_12"}, tensor<16xf32> {braid.name = "view_2"}, tensor<16x16xf32> {braid.name = "mm_10"}, tensor<16xf32> {braid.name = "view_1"}, tensor<16x16xf32> {braid.name = "mm_8"}, tensor<16xf32> {braid.name = "view"}) {
    %17 = braid.constant {value = dense<1.220703125e-04> : tensor<512x16xf32>, braid.name = "div"} : tensor<512x16xf32>
    %18 = braid.constant {value = dense<1.000000e+00> : tensor<1x1xf32>} : tensor<1x1xf32>
    %19 = braid.matmul %0, %1 {braid.name = "mm"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %20 = braid.reshape %2 {braid.name = "add/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %21 = braid.add %19, %20 {braid.name = "add"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %22 = braid.tanh %21 {braid.name = "tanh"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %23 = braid.matmul %22, %3 {braid.name = "mm_1"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %24 = braid.reshape %4 {braid.name = "add_1/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %25 = braid.add %23, %24 {braid.name = "add_1"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %26 = braid.tanh %25 {braid.name = "tanh_1"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %27 = braid.matmul %26, %5 {braid.name = "mm_2"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %28 = braid.reshape %6 {braid.name = "add_2/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %29 = braid.add %27, %28 {braid.name = "add_2"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %30 = braid.tanh %29 {braid.name = "tanh_2"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %31 = braid.matmul %30, %7 {braid.name = "mm_3"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %32 = braid.reshape %8 {braid.name = "add_3/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %33 = braid.add %31, %32 {braid.name = "add_3"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %34 = braid.tanh %33 {braid.name = "tanh_3"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %35 = braid.matmul %34, %9 {braid.name = "mm_4"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %36 = braid.reshape %10 {braid.name = "add_4/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %37 = braid.add %35, %36 {braid.name = "add_4"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %38 = braid.tanh %37 {braid.name = "tanh_4"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %39 = braid.matmul %38, %11 {braid.name = "mm_5"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %40 = braid.reshape %12 {braid.name = "add_5/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %41 = braid.add %39, %40 {braid.name = "add_5"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %42 = braid.tanh %41 {braid.name = "tanh_5"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %43 = braid.matmul %42, %13 {braid.name = "mm_6"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %44 = braid.reshape %14 {braid.name = "add_6/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %45 = braid.add %43, %44 {braid.name = "add_6"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %46 = braid.tanh %45 {braid.name = "tanh_6"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %47 = braid.matmul %46, %15 {braid.name = "mm_7"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %48 = braid.reshape %16 {braid.name = "add_7/reshape"} : (tensor<16xf32>) -> tensor<1x16xf32>
    %49 = braid.add %47, %48 {braid.name = "add_7"} : (tensor<512x16xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    %50 = braid.tanh %49 {braid.name = "tanh_7"} : (tensor<512x16xf32>) -> tensor<512x16xf32>
    %51 = braid.mul %17, %50 {braid.name = "mul_1"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %52 = braid.add %51, %51 {braid.name = "add_8"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %53 = braid.mul %50, %50 {braid.name = "mul_3"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %54 = braid.sub %18, %53 {braid.name = "sub"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %55 = braid.mul %52, %54 {braid.name = "mul_4"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %56 = braid.reduce %55 {kind = "add", dims = array<i64: 0>, braid.name = "sum_1"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %57 = braid.reshape %56 {braid.name = "view"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %58 = braid.transpose %46 {permutation = array<i64: 1, 0>, braid.name = "t"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %59 = braid.matmul %58, %55 {braid.name = "mm_8"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %60 = braid.transpose %15 {permutation = array<i64: 1, 0>, braid.name = "t_1"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %61 = braid.matmul %55, %60 {braid.name = "mm_9"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %62 = braid.mul %46, %46 {braid.name = "mul_5"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %63 = braid.sub %18, %62 {braid.name = "sub_1"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %64 = braid.mul %61, %63 {braid.name = "mul_6"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %65 = braid.reduce %64 {kind = "add", dims = array<i64: 0>, braid.name = "sum_2"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %66 = braid.reshape %65 {braid.name = "view_1"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %67 = braid.transpose %42 {permutation = array<i64: 1, 0>, braid.name = "t_2"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %68 = braid.matmul %67, %64 {braid.name = "mm_10"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %69 = braid.transpose %13 {permutation = array<i64: 1, 0>, braid.name = "t_3"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %70 = braid.matmul %64, %69 {braid.name = "mm_11"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %71 = braid.mul %42, %42 {braid.name = "mul_7"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %72 = braid.sub %18, %71 {braid.name = "sub_2"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %73 = braid.mul %70, %72 {braid.name = "mul_8"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %74 = braid.reduce %73 {kind = "add", dims = array<i64: 0>, braid.name = "sum_3"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %75 = braid.reshape %74 {braid.name = "view_2"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %76 = braid.transpose %38 {permutation = array<i64: 1, 0>, braid.name = "t_4"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %77 = braid.matmul %76, %73 {braid.name = "mm_12"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %78 = braid.transpose %11 {permutation = array<i64: 1, 0>, braid.name = "t_5"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %79 = braid.matmul %73, %78 {braid.name = "mm_13"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %80 = braid.mul %38, %38 {braid.name = "mul_9"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %81 = braid.sub %18, %80 {braid.name = "sub_3"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %82 = braid.mul %79, %81 {braid.name = "mul_10"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %83 = braid.reduce %82 {kind = "add", dims = array<i64: 0>, braid.name = "sum_4"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %84 = braid.reshape %83 {braid.name = "view_3"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %85 = braid.transpose %34 {permutation = array<i64: 1, 0>, braid.name = "t_6"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %86 = braid.matmul %85, %82 {braid.name = "mm_14"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %87 = braid.transpose %9 {permutation = array<i64: 1, 0>, braid.name = "t_7"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %88 = braid.matmul %82, %87 {braid.name = "mm_15"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %89 = braid.mul %34, %34 {braid.name = "mul_11"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %90 = braid.sub %18, %89 {braid.name = "sub_4"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %91 = braid.mul %88, %90 {braid.name = "mul_12"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %92 = braid.reduce %91 {kind = "add", dims = array<i64: 0>, braid.name = "sum_5"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %93 = braid.reshape %92 {braid.name = "view_4"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %94 = braid.transpose %30 {permutation = array<i64: 1, 0>, braid.name = "t_8"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %95 = braid.matmul %94, %91 {braid.name = "mm_16"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %96 = braid.transpose %7 {permutation = array<i64: 1, 0>, braid.name = "t_9"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %97 = braid.matmul %91, %96 {braid.name = "mm_17"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %98 = braid.mul %30, %30 {braid.name = "mul_13"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %99 = braid.sub %18, %98 {braid.name = "sub_5"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %100 = braid.mul %97, %99 {braid.name = "mul_14"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %101 = braid.reduce %100 {kind = "add", dims = array<i64: 0>, braid.name = "sum_6"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %102 = braid.reshape %101 {braid.name = "view_5"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %103 = braid.transpose %26 {permutation = array<i64: 1, 0>, braid.name = "t_10"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %104 = braid.matmul %103, %100 {braid.name = "mm_18"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %105 = braid.transpose %5 {permutation = array<i64: 1, 0>, braid.name = "t_11"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %106 = braid.matmul %100, %105 {braid.name = "mm_19"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %107 = braid.mul %26, %26 {braid.name = "mul_15"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %108 = braid.sub %18, %107 {braid.name = "sub_6"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %109 = braid.mul %106, %108 {braid.name = "mul_16"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %110 = braid.reduce %109 {kind = "add", dims = array<i64: 0>, braid.name = "sum_7"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %111 = braid.reshape %110 {braid.name = "view_6"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %112 = braid.transpose %22 {permutation = array<i64: 1, 0>, braid.name = "t_12"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %113 = braid.matmul %112, %109 {braid.name = "mm_20"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %114 = braid.transpose %3 {permutation = array<i64: 1, 0>, braid.name = "t_13"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %115 = braid.matmul %109, %114 {braid.name = "mm_21"} : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %116 = braid.mul %22, %22 {braid.name = "mul_17"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %117 = braid.sub %18, %116 {braid.name = "sub_7"} : (tensor<1x1xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %118 = braid.mul %115, %117 {braid.name = "mul_18"} : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
    %119 = braid.reduce %118 {kind = "add", dims = array<i64: 0>, braid.name = "sum_8"} : (tensor<512x16xf32>) -> tensor<1x16xf32>
    %120 = braid.reshape %119 {braid.name = "view_7"} : (tensor<1x16xf32>) -> tensor<16xf32>
    %121 = braid.transpose %0 {permutation = array<i64: 1, 0>, braid.name = "t_14"} : (tensor<512x16xf32>) -> tensor<16x512xf32>
    %122 = braid.matmul %121, %118 {braid.name = "mm_22"} : (tensor<16x512xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    func.return %122, %120, %113, %111, %104, %102, %95, %93, %86, %84, %77, %75, %68, %66, %59, %57 : tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>
  }
}
