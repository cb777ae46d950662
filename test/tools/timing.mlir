// RUN: %braid-opt %s -p canonicalize,cse --timing 2>&1 >/dev/null | filecheck %s

// CHECK:      ... Execution time report ...
// CHECK:      Total Execution Time: {{[0-9]+\.[0-9]+}} seconds
// CHECK:      ----Wall Time---- ----Name----
// CHECK-NEXT: {{[0-9.]+ +\( *[0-9.]+%\)}} (parse)
// CHECK:      (verify)
// CHECK:      canonicalize
// CHECK:      cse
// CHECK:      (print)
// CHECK:      ({{ *}}100.0%) Total
builtin.module {}
