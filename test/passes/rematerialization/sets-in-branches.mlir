// The remark of a function counts the sets in its branches and loops too.
// RUN: %braid-opt %s -p 'select-rematerialization{tensor-threshold=0}' --remarks -o /dev/null 2>&1 | filecheck %s

// CHECK: recompute p; q for r: 10 B by tensor
// CHECK: recompute p for r: 100 B by tensor
// CHECK: remark: [select-rematerialization] sets: 2, ops to recompute: 3
func.func @main(%c: i1, %x: tensor<10xi8>) -> tensor<10xi8> {
  %y = scf.if %c -> (tensor<10xi8>) {
    %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10xi8>) -> tensor<100xi8>
    %q = braid.opaque "q"(%p) {braid.name = "q"} : (tensor<100xi8>) -> tensor<10xi8>
    %r = braid.opaque "r"(%q, %p) {braid.name = "r"} : (tensor<10xi8>, tensor<100xi8>) -> tensor<10xi8>
    scf.yield %r : tensor<10xi8>
  } else {
    scf.yield %x : tensor<10xi8>
  }
  func.return %y : tensor<10xi8>
}
