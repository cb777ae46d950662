// RUN: not %braid-opt %s -p 'bind-sizes{values="rows=0"}' 2>&1 | filecheck %s --check-prefix=RANGE
// RUN: not %braid-opt %s -p 'bind-sizes{values="columns=3"}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not %braid-opt %s -p 'bind-sizes{values="rows"}' 2>&1 | filecheck %s --check-prefix=TEXT
// RUN: not %braid-opt %s -p 'bind-sizes{values="rows=2"}' 2>&1 | filecheck %s --check-prefix=WINDOW
// RUN: not %braid-opt %s -p 'bind-sizes{values="length=999999999999999999"}' 2>&1 | filecheck %s --check-prefix=LARGE
// RUN: %braid-opt %s -p 'bind-sizes{values="rows=3"}' | filecheck %s --check-prefix=RIGHT

// RANGE: error: size 'rows' is 0, expected at least 1 and at most 64
// NAME: error: there is no size 'columns' to bind
// NAME: hint: the open sizes are: length, rows
// TEXT: error: bind-sizes: 'rows' is no name and number
// WINDOW: bind-sizes-errors.mlir:[[# @LINE + 6]]:{{.*}}error: 'braid.pool' is impossible at rows = 2: {{.*}}window of 3 on 2 elements
// LARGE: error: 'func.func' is impossible at length = 999999999999999999: {{.*}}expected at most
// RIGHT: braid.pool {{.*}} -> tensor<1x1x1xf32>
func.func @pool(%x: tensor<1x1x?xf32, #braid.sizes<["rows"]>>)
    attributes {braid.symbols = {rows = #braid.symbol<{min = 1 : i64, max = 64 : i64}>}} {
  // Windows of three rows.
  %y = braid.pool %x {kind = "max", window = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>} : (tensor<1x1x?xf32, #braid.sizes<["rows"]>>) -> tensor<1x1x?xf32, #braid.sizes<["rows - 2"]>>
  return
}

func.func @no_op(%x: tensor<?xi1, #braid.sizes<["length"]>>) -> tensor<?xi1, #braid.sizes<["length"]>> {
  return %x : tensor<?xi1, #braid.sizes<["length"]>>
}
