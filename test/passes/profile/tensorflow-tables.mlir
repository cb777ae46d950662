// TensorFlow's tables as it writes them: of input ops (milliseconds, by the title), of ops in
// milliseconds, and as an array of two JSON tables that say the same.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/input-ops.csv}' | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/milliseconds.csv}' | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/tables.json}' | filecheck %s

// 900 ms / 90 and 900 ms / 10.
// CHECK: braid.opaque "C"{{.*}} braid.seconds = {{1.000000e-02|0.0099999999}}
// CHECK: braid.opaque "D"{{.*}} braid.seconds = {{9.000000e-02|0.0899999999}}
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %b = braid.opaque "C"(%x) {braid.name = "C"} : (tensor<4xf32>) -> tensor<4xf32>
    %d = braid.opaque "D"(%b) {braid.name = "D"} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %d : tensor<4xf32>
  }
}
