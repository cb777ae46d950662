// RUN: %braid-opt %s -p collect-size-checks,select-likely-sizes --split-input-file --remarks 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK < %t

// A batch is 1, a sequence 128, whatever else is assumed is kept; what is given stays.
// REMARK: [select-likely-sizes] decisions are made at batch = 1, length = 96, given = 7
// CHECK-LABEL: @guesses
// CHECK-SAME: braid.symbols = {batch = #braid.symbol<{likely = array<i64: 1>}>, given = #braid.symbol<{likely = array<i64: 7>}>, length = #braid.symbol<{max = 100 : i64, multiple_of = 32 : i64, likely = array<i64: 96>}>}
func.func @guesses(%x: tensor<?x?x?xf32, #braid.sizes<["batch", "length", "given"]>>) attributes {braid.symbols = {given = #braid.symbol<{likely = array<i64: 7>}>, length = #braid.symbol<{max = 100 : i64, multiple_of = 32 : i64}>}} {
  func.return
}

// -----

// The first guess is impossible: the last 200 of 128.
// REMARK: [select-likely-sizes] decisions are made at n = 256
// CHECK-LABEL: @others
func.func @others(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<200xf32> {
  %part = braid.sized_slice %x {offsets = #braid.sizes<["n - 200"]>, sizes = #braid.sizes<["200"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<200xf32>
  func.return %part : tensor<200xf32>
}

// -----

// A size that a check fixes has that number, whatever other sizes are.
// REMARK: [select-likely-sizes] decisions are made at batch = 1, channels = 6
func.func @fixed(%x: tensor<?x?xf32, #braid.sizes<["batch", "channels"]>>, %w: tensor<6x2xf32>) -> tensor<?x2xf32, #braid.sizes<["batch"]>> {
  %y = braid.matmul %x, %w : (tensor<?x?xf32, #braid.sizes<["batch", "channels"]>>, tensor<6x2xf32>) -> tensor<?x2xf32, #braid.sizes<["batch"]>>
  func.return %y : tensor<?x2xf32, #braid.sizes<["batch"]>>
}

// -----

// A result of one element says nothing of larger ones: the next size that is possible is taken.
// REMARK: [select-likely-sizes] decisions are made at n = 256
func.func @short(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n floordiv 128"]>> {
  %part = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["n floordiv 128"]>, strides = array<i64: 128>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n floordiv 128"]>>
  func.return %part : tensor<?xf32, #braid.sizes<["n floordiv 128"]>>
}

// -----

// Parts that add up to at most 3 rows: no change of one size alone makes the check hold.
// REMARK: [select-likely-sizes] decisions are made at rows = 3, first = 1, rest = 2
func.func @parts(%x: tensor<?xf32, #braid.sizes<["rows"]>>, %a: tensor<?xf32, #braid.sizes<["first"]>>, %b: tensor<?xf32, #braid.sizes<["rest"]>>) -> tensor<?xf32, #braid.sizes<["rows"]>> attributes {braid.symbols = {rows = #braid.symbol<{max = 3 : i64}>}} {
  %whole = braid.concat %a, %b {dim = 0 : i64} : (tensor<?xf32, #braid.sizes<["first"]>>, tensor<?xf32, #braid.sizes<["rest"]>>) -> tensor<?xf32, #braid.sizes<["first + rest"]>>
  %sum = braid.add %x, %whole : (tensor<?xf32, #braid.sizes<["rows"]>>, tensor<?xf32, #braid.sizes<["first + rest"]>>) -> tensor<?xf32, #braid.sizes<["rows"]>>
  func.return %sum : tensor<?xf32, #braid.sizes<["rows"]>>
}
