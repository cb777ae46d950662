// What a peak counts: of what the ops make, while n runs p + m + n, 170 B; with the input 10170 B.
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=169}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=ONE
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=170}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=NONE
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=10169 peak=all}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=ONE
// RUN: %braid-opt %s -p 'select-rematerialization{peak-threshold=10170 peak=all}' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=NONE

// ONE: recompute p for c: 100 B by peak
// ONE: sets: 1, ops to recompute: 1
// NONE: sets: 0, ops to recompute: 0
func.func @main(%x: tensor<10000xi8>) -> tensor<10xi8> {
  %p = braid.opaque "p"(%x) {braid.name = "p"} : (tensor<10000xi8>) -> tensor<100xi8>
  %m = braid.opaque "m"(%p) {braid.name = "m"} : (tensor<100xi8>) -> tensor<50xi8>
  %n = braid.opaque "n"(%m, %x) {braid.name = "n"} : (tensor<50xi8>, tensor<10000xi8>) -> tensor<20xi8>
  %c = braid.opaque "c"(%n, %p) {braid.name = "c"} : (tensor<20xi8>, tensor<100xi8>) -> tensor<10xi8>
  func.return %c : tensor<10xi8>
}
