// Between p and c is m, p + m = 150 B, and not u, 1000 B, which only stands there in the file.
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=149}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=ONE
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=150}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=NONE

// ONE: recompute p for c: 100 B by peak
// NONE: sets: 0, ops to recompute: 0
func.func @main(%x: tensor<10xi8>) -> (tensor<10xi8>, tensor<10xi8>) {
  %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10xi8>) -> tensor<100xi8>
  %m = braid.opaque "m"(%p) {braid.name = "m"} : (tensor<100xi8>) -> tensor<50xi8>
  %u = braid.opaque "u"(%x) {braid.name = "u"} : (tensor<10xi8>) -> tensor<1000xi8>
  %v = braid.opaque "v"(%u) {braid.name = "v"} : (tensor<1000xi8>) -> tensor<10xi8>
  %c = braid.opaque "c"(%m, %p) {braid.name = "c"} : (tensor<50xi8>, tensor<100xi8>) -> tensor<10xi8>
  func.return %c, %v : tensor<10xi8>, tensor<10xi8>
}
