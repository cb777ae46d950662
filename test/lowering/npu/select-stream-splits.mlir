// How the ops of a stream are cut is its schedule's affair: by default each uses a third of the
// chip's memory at most; with 12 parts and rows first, tiles are smaller, and of whole rows.
// RUN: sed 's/braid.name = "y"/braid.schedule = {family = "stream", schedule = {parts = 12 : i64, first = 1 : i64}}/' %s > %t.chosen.mlir
// RUN: sed 's/braid.name = "y"/braid.schedule = {family = "stream", schedule = {tiles = 12 : i64}}/' %s > %t.wrong.mlir
// RUN: %braid-opt %s -p 'select-stream-splits{target=%S/tiny.toml}' | FileCheck %s
// RUN: %braid-opt %t.chosen.mlir -p 'select-stream-splits{target=%S/tiny.toml}' | FileCheck %s --check-prefix=CHOSEN
// RUN: %braid-opt %t.chosen.mlir -p 'select-stream-splits{target=%S/tiny.toml},apply-splits,attach-streams{target=%S/tiny.toml search-seconds=0}' | FileCheck %s --check-prefix=ATTACHED
// RUN: not %braid-opt %t.wrong.mlir -p 'select-stream-splits{target=%S/tiny.toml}' 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: env BRAID_CACHE_DIR=%t.cache %braid-opt %s -p 'select-stream-schedules{target=%S/tiny.toml}' --remarks 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: braid.exp {{.*}}braid.split = array<i64: 1, 1, 5, 1>
// CHOSEN: braid.exp {{.*}}braid.split = array<i64: 1, 1, 20, 1>
// ATTACHED-NOT: braid.schedule
// ATTACHED: braid.streams
// ATTACHED-NOT: braid.schedule
// WRONG: error: 'braid.schedule' is stream tiles=12, which is not a schedule of a stream
// WRONG: hint: leave it out, or give parts, first, follow, reductions and pieces
// NONE: remark: [select-stream-schedules] 0 of 1 streams have a record of a search
func.func @main(%x: tensor<1x4x100x500xf32>) -> tensor<1x4x100x500xf32> {
  %y = braid.exp %x {braid.name = "y"} : (tensor<1x4x100x500xf32>) -> tensor<1x4x100x500xf32>
  func.return %y : tensor<1x4x100x500xf32>
}
