// RUN: %braid-opt %s -p split-phases | filecheck %s

// Each op is in the first phase in which its operands and sizes are known. Values of the first
// phase that the second one reads are its results. Constants are cloned, and the size of a dim that
// no argument has is passed as a value.

func.func @main(%x: tensor<?x6xf32, #braid.sizes<["batch"]>> {braid.name = "x"},
    %c: tensor<1xi64> {braid.name = "c"})
    -> (tensor<?x?xf32, #braid.sizes<["batch", "n"]>> {braid.name = "y"},
        tensor<?xf32, #braid.sizes<["batch + n"]>> {braid.name = "z"},
        tensor<1xi64> {braid.name = "c_again"})
    attributes {braid.symbols = {n = #braid.symbol<{max = 6 : i64}>}} {
  %twice = braid.add %c, %c {braid.name = "twice"} : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %e = braid.exp %x {braid.name = "e"} : (tensor<?x6xf32, #braid.sizes<["batch"]>>)
      -> tensor<?x6xf32, #braid.sizes<["batch"]>>
  braid.decide_sizes %twice {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  %y = braid.sized_slice %e {offsets = #braid.sizes<["0", "0"]>,
      sizes = #braid.sizes<["batch", "n"]>, strides = array<i64: 1, 1>}
      : (tensor<?x6xf32, #braid.sizes<["batch"]>>) -> tensor<?x?xf32, #braid.sizes<["batch", "n"]>>
  %one = braid.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %z = braid.broadcast %one : (tensor<1xf32>) -> tensor<?xf32, #braid.sizes<["batch + n"]>>
  return %y, %z, %c : tensor<?x?xf32, #braid.sizes<["batch", "n"]>>,
      tensor<?xf32, #braid.sizes<["batch + n"]>>, tensor<1xi64>
}

// CHECK:      builtin.module attributes {braid.phase_outputs = {{\[\[}}"y", "y"], ["z", "z"], ["c_again", "c"]]}
// CHECK:      func.func @main_0(%{{.*}}: {{.*}} {braid.name = "x"}, %{{.*}}: {{.*}} {braid.name = "c"})
// CHECK-SAME:   {braid.name = "e"}
// CHECK-SAME:   tensor<1xi64> {braid.name = "twice"}
// CHECK-SAME:   braid.phase = 0 : i64
// CHECK-NOT:  braid.constant
// CHECK:      braid.add
// CHECK:      braid.exp
// CHECK:      func.func @main_1(
// CHECK-SAME:   {braid.name = "e"}
// CHECK-SAME:   tensor<1xi64> {braid.name = "twice", braid.value_sizes = #braid.sizes<["n"]>}
// CHECK-SAME:   braid.phase = 1 : i64, braid.symbols = {n = #braid.symbol<{max = 6 : i64}>}
// CHECK:      braid.sized_slice
// CHECK:      braid.constant
// CHECK:      braid.broadcast
// CHECK-NOT:  decide_sizes
