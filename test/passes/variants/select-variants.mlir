// RUN: mkdir -p %t && cd %t
// RUN: echo '{"ops": {}, "sizes": [{"dims": {"n": 8}, "count": 90}, {"dims": {"n": 5}, "count": 9}, {"dims": {"n": 7}, "count": 1}]}' > own.json
// RUN: echo '{"ops": {}, "sizes": [{"dims": {"m": 8}, "count": 90}]}' > other.json
// RUN: echo '{"ops": {}, "sizes": [{"dims": {"n": 65}, "count": 90}]}' > large.json
// RUN: %braid-opt %s -p 'select-variants{file=own.json}' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'select-variants{file=own.json},add-specializations' | filecheck %s --check-prefix=ADDED
// RUN: %braid-opt %s -p 'select-variants{file=own.json bytes=100}' --remarks 2>&1 | filecheck %s --check-prefix=BUDGET
// RUN: not %braid-opt %s -p 'select-variants{file=other.json}' 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not %braid-opt %s -p 'select-variants{file=large.json}' 2>&1 | filecheck %s --check-prefix=LARGE

// Integer products of open rows have no instructions of their own: code for frequent rows pays.

// CHECK:      remark: [select-variants] code of its own for n = 8 (90% of runs, {{.*}} times as fast), n = 5 (9% of runs, {{.*}}); about {{.*}} KiB and {{.*}} s to compile
// CHECK:      braid.specialize = [{n = 8 : i64}, {n = 5 : i64}]
// ADDED-NOT:  braid.specialize =
// ADDED:      func.func @main_{{.*}}braid.specialized = {n = {{[85]}} : i64}
// ADDED:      func.func @main_{{.*}}braid.specialized = {n = {{[85]}} : i64}
// BUDGET:     remark: [select-variants] no code of its own: n = 8 ({{.*}}) exceeds the budget
// BUDGET-NOT: braid.specialize
// OTHER:      other.json: error: the profile counts sizes of 'm', which is no open dim of the model
// OTHER:      hint: was it taken with another model, or with other fixed dims or bounds? Its open dims are: n
// LARGE:      large.json: error: the profile has n = 65, which the model does not allow
module attributes {braid.target = #braid.target<"host", {cpu = "cascadelake"}>} {
func.func @main(%x: tensor<?x256xui8, #braid.sizes<["n"]>>, %w: tensor<256x256xi8>)
    -> tensor<?x256xi32, #braid.sizes<["n"]>>
    attributes {braid.symbols = {n = #braid.symbol<{max = 64 : i64}>}} {
  %a = braid.cast %x : (tensor<?x256xui8, #braid.sizes<["n"]>>)
      -> tensor<?x256xi32, #braid.sizes<["n"]>>
  %b = braid.cast %w : (tensor<256x256xi8>) -> tensor<256x256xi32>
  %y = braid.matmul %a, %b : (tensor<?x256xi32, #braid.sizes<["n"]>>, tensor<256x256xi32>)
      -> tensor<?x256xi32, #braid.sizes<["n"]>>
  return %y : tensor<?x256xi32, #braid.sizes<["n"]>>
}
}
