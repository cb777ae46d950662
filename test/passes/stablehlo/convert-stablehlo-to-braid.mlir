// RUN: %braid-opt %s -p convert-stablehlo-to-braid | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK:         [[R:%.*]] = braid.reduce %x {kind = "add", dims = array<i64: 1>} : (tensor<4x8xf32>)
// CHECK-NEXT:    braid.reshape [[R]] : (tensor<4x1xf32>) -> tensor<4xf32>
func.func @sums(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %y = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Branch 0, branch 1, and branch 2 for all other numbers; names of the model stay.
// CHECK-LABEL: func.func @numbered
// CHECK:         [[ZERO:%.*]] = braid.constant {value = dense<0>
// CHECK-NEXT:    [[FIRST:%.*]] = braid.eq %i, [[ZERO]]
// CHECK-NEXT:    [[IS_FIRST:%.*]] = tensor.extract [[FIRST]][]
// CHECK:         [[SECOND:%.*]] = braid.eq %i
// CHECK-NEXT:    [[IS_SECOND:%.*]] = tensor.extract [[SECOND]][]
// CHECK-NEXT:    %y = scf.if [[IS_FIRST]] -> (tensor<4xf32>) {
// CHECK-NEXT:      %n = braid.neg %x
// CHECK-NEXT:      scf.yield %n
// CHECK-NEXT:    } else {
// CHECK-NEXT:      [[REST:%.*]] = scf.if [[IS_SECOND]] -> (tensor<4xf32>) {
// CHECK-NEXT:        scf.yield %x
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %a = braid.abs %x
// CHECK-NEXT:        scf.yield %a
// CHECK-NEXT:      }{braid.profile_keys = {then = "numbered/if1/then", else = "numbered/if1/else"}}
// CHECK-NEXT:      scf.yield [[REST]]
// CHECK-NEXT:    }{braid.name = "branches", braid.profile_keys = {then = "numbered/if0/then", else = "numbered/if0/else"}}
// CHECK-NEXT:    func.return %y
func.func @numbered(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %y = "stablehlo.case"(%i) ({
    %n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%n) : (tensor<4xf32>) -> ()
  }, {
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }, {
    %a = "stablehlo.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
  }) {braid.name = "branches"} : (tensor<i32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Pairs of bools that are both true are counted: a sum of bools would forget every other one.
// CHECK-LABEL: func.func @product_of_bools
// CHECK:         [[A:%.*]] = braid.cast %a : (tensor<2x3xi1>) -> tensor<2x3xi32>
// CHECK:         [[B:%.*]] = braid.cast %b : (tensor<3x2xi1>) -> tensor<3x2xi32>
// CHECK:         [[N:%.*]] = braid.matmul
// CHECK:         braid.ne [[N]]
func.func @product_of_bools(%a: tensor<2x3xi1>, %b: tensor<3x2xi1>) -> tensor<2x2xi1> {
  %y = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
    : (tensor<2x3xi1>, tensor<3x2xi1>) -> tensor<2x2xi1>
  func.return %y : tensor<2x2xi1>
}

// A key is sorted stably, and the other operands are permuted with it.
// CHECK-LABEL: func.func @sorted
// CHECK:         %{{.*}}, [[ORDER:%.*]] = braid.top_k %x {k = 8 : i64, dim = 1 : i64, largest = false}
// CHECK:         braid.gather_elements %x, [[ORDER]] {dim = 1 : i64}
// CHECK:         braid.gather_elements %i, [[ORDER]] {dim = 1 : i64}
func.func @sorted(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>) {
  %s:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  func.return %s#0, %s#1 : tensor<4x8xf32>, tensor<4x8xi32>
}

// Updates that are out of bounds add nothing.
// CHECK-LABEL: func.func @scattered
// CHECK:         [[LOW:%.*]] = braid.ge %i
// CHECK:         [[HIGH:%.*]] = braid.le %i
// CHECK:         [[INSIDE:%.*]] = braid.and [[LOW]], [[HIGH]]
// CHECK:         [[EACH:%.*]] = braid.reduce [[INSIDE]] {kind = "and", dims = array<i64: 1>}
// CHECK:         [[NONE:%.*]] = braid.constant {value = dense<-0.000000e+00>
// CHECK:         [[UPDATE:%.*]] = braid.select [[EACH]], %u, [[NONE]]
// CHECK:         braid.scatter_nd %x, %i, [[UPDATE]] {reduction = "add"}
func.func @scattered(%x: tensor<9x3xf32>, %i: tensor<2x1xi32>, %u: tensor<2x3xf32>)
    -> tensor<9x3xf32> {
  %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<9x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<9x3xf32>
  func.return %y : tensor<9x3xf32>
}

// `argmax`, as JAX writes it.
// CHECK-LABEL: func.func @argmax
// CHECK:         [[PLACE:%.*]] = braid.arg_reduce %x {kind = "max", dim = 1 : i64, select_last = false}
// CHECK:         braid.gather_elements %x, [[PLACE]]
// CHECK:         braid.cast [[PLACE]] : (tensor<4x1xi64>) -> tensor<4x1xi32>
func.func @argmax(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %i = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4x8xi32>
  %low = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %y:2 = "stablehlo.reduce"(%x, %i, %low, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %0 = "stablehlo.compare"(%a, %c) <{comparison_direction = #stablehlo<comparison_direction GT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = "stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction NE>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = "stablehlo.or"(%0, %1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %3 = "stablehlo.compare"(%a, %c) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = "stablehlo.compare"(%b, %d) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = "stablehlo.and"(%3, %4) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %6 = "stablehlo.or"(%2, %5) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %7 = "stablehlo.select"(%2, %a, %c) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %8 = "stablehlo.select"(%6, %b, %d) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%7, %8) : (tensor<f32>, tensor<i32>) -> ()
  }) : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  func.return %y#0, %y#1 : tensor<4xf32>, tensor<4xi32>
}

// Any other region combines neighbours, then pairs of these.
// CHECK-LABEL: func.func @norm
// CHECK:         [[EVEN:%.*]] = braid.slice [[ROWS:%.*]] {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 2, 1>}
// CHECK:         [[ODD:%.*]] = braid.slice [[ROWS]] {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 4>, strides = array<i64: 2, 1>}
// CHECK:         braid.mul [[EVEN]], [[EVEN]]
// CHECK:         braid.mul [[ODD]], [[ODD]]
// CHECK:         braid.add
// CHECK:         [[ROOT:%.*]] = braid.sqrt
// CHECK:         [[LAST:%.*]] = braid.slice [[ROWS]] {offsets = array<i64: 2, 0>
// CHECK:         braid.concat [[ROOT]], [[LAST]]
func.func @norm(%x: tensor<4x3xf32>) -> tensor<4xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %y = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.multiply"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %d = "stablehlo.multiply"(%b, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %e = "stablehlo.add"(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %f = "stablehlo.sqrt"(%e) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%f) : (tensor<f32>) -> ()
  }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// A slice of two rows is the places of both.
// CHECK-LABEL: func.func @slices
// CHECK:         [[START:%.*]] = braid.minimum
// CHECK:         [[FIRST:%.*]] = braid.reshape [[START]] : (tensor<5x1xi32>) -> tensor<5x1x1xi32>
// CHECK:         [[OFFSETS:%.*]] = braid.constant {value = dense<{{\[\[\[0\], \[1\]\]\]}}>
// CHECK:         [[PLACES:%.*]] = braid.add [[FIRST]], [[OFFSETS]]
// CHECK:         braid.gather_nd %x, [[PLACES]]
func.func @slices(%x: tensor<9x3xf32>, %i: tensor<5x1xi32>) -> tensor<5x2x3xf32> {
  %y = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}>
    : (tensor<9x3xf32>, tensor<5x1xi32>) -> tensor<5x2x3xf32>
  func.return %y : tensor<5x2x3xf32>
}

// Each row of the factor is what the rows above leave of its row, over the root of its pivot.
// CHECK-LABEL: func.func @factor
// CHECK:         [[UPPER:%.*]] = braid.transpose
// CHECK:         scf.for [[I:%.*]] = {{.*}} iter_args([[R:%.*]] = {{%.*}}, {{%.*}} = {{%.*}})
// CHECK:           [[COLUMN:%.*]] = braid.gather [[R]], {{%.*}} {dim = 2 : i64}
// CHECK:           [[ABOVE:%.*]] = braid.transpose [[COLUMN]]
// CHECK:           [[ROW:%.*]] = braid.gather [[UPPER]], {{%.*}} {dim = 1 : i64}
// CHECK:           [[TAKEN:%.*]] = braid.matmul [[ABOVE]], [[R]]
// CHECK:           [[REST:%.*]] = braid.sub [[ROW]], [[TAKEN]]
// CHECK:           [[PIVOT:%.*]] = braid.gather [[REST]], {{%.*}} {dim = 2 : i64}
// CHECK:           [[ROOT:%.*]] = braid.sqrt [[PIVOT]]
// CHECK:           braid.div [[REST]], [[ROOT]]
func.func @factor(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = "stablehlo.cholesky"(%x) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @substitution
// CHECK:         scf.for {{.*}} iter_args([[X:%.*]] = {{%.*}})
// CHECK:           [[BEFORE:%.*]] = braid.select
// CHECK:           [[TAKEN:%.*]] = braid.matmul [[BEFORE]], [[X]]
// CHECK:           [[ROW:%.*]] = braid.sub {{%.*}}, [[TAKEN]]
// CHECK:           braid.div [[ROW]]
func.func @substitution(%a: tensor<4x4xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %y = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true,
    unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}
