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
