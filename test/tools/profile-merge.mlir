// Counts of one more run warm the model up and are left out; merged profiles add up.
// RUN: %braid run %s --random --runs 3 --profile %t.3.json
// RUN: %braid run %s --random --profile %t.1.json
// RUN: %braid profile merge %t.3.json %t.1.json -o %t.json | filecheck %s --check-prefix=MERGED
// RUN: filecheck %s --input-file %t.json --check-prefix=JSON
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.json}' | filecheck %s
// RUN: sed 's/^   4,/   2,/' %t.1.json > %t.other.json
// RUN: not %braid profile merge %t.3.json %t.other.json -o %t.none.json 2>&1 | filecheck %s --check-prefix=SHAPES
// RUN: not ls %t.none.json
// RUN: not %braid run %s --random --runs 0 2>&1 | filecheck %s --check-prefix=RUNS

// MERGED: 2 profiles, 1 ops
// JSON: "y"
// JSON-NEXT: "count": 4,
// JSON: "layouts"
// JSON-NEXT: "ab->ab": {
// JSON-NEXT: "count": 4,
// CHECK: braid.seconds = {{.*}} braid.layout_seconds = {"ab->ab" =
// SHAPES: other.json: error: the runs had inputs x=2,8, but those of '{{.*}}' x=4,8
// SHAPES: hint: times of other shapes do not add up
// RUNS: error: --runs is '0', expected greater than or equal to 1
func.func @main(%x: tensor<4x8xf32> {braid.name = "x"}) -> tensor<4x8xf32> {
  %y = braid.exp %x {braid.name = "y"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
