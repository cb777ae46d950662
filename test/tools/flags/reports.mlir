// RUN: %braid-opt %s --pass-pipeline='builtin.module(func.func(cse),canonicalize,cse)' --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=PIPELINE
// RUN: %braid-opt %s -cse -canonicalize -cse --mlir-pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=EACH
// RUN: %braid-opt %s -cse -canonicalize -cse --mlir-pass-statistics --mlir-pass-statistics-display=list 2>&1 >/dev/null | FileCheck %s --check-prefix=MERGED
// RUN: %braid-opt %s -cse --mlir-timing --mlir-output-format=json 2>&1 >/dev/null | %python -c "import json, sys; print([row['name'] for row in json.load(sys.stdin)])" | FileCheck %s --check-prefix=JSON
// RUN: %braid-opt %s -cse --mlir-timing --mlir-timing-display=list 2>&1 >/dev/null | FileCheck %s --check-prefix=LIST
// RUN: %braid-opt %s -cse --mlir-generate-reproducer=%t.mlir -o /dev/null
// RUN: %braid-opt --run-reproducer %t.mlir | FileCheck %s --check-prefix=AGAIN

// PIPELINE:       Pass Manager with 3 passes:
// PIPELINE-NEXT:  builtin.module(
// PIPELINE-NEXT:    cse,
// PIPELINE-NEXT:    canonicalize,
// PIPELINE-NEXT:    cse
// PIPELINE-NEXT:  )
// EACH:           ... Pass statistics report ...
// EACH:           CSEPass (cse)
// EACH-NEXT:        (S) 6 num-ops-found - Number of ops before the pass
// EACH-NEXT:        (S) 0 num-ops-made
// EACH-NEXT:        (S) 1 num-ops-removed - Number of ops that the pass removed
// EACH-NEXT:      CanonicalizePass (canonicalize)
// EACH-NEXT:        (S) 5 num-ops-found
// EACH:           CSEPass (cse)
// MERGED:         CSEPass (cse)
// MERGED-NEXT:      (S) 11 num-ops-found
// MERGED-NEXT:      (S) 0 num-ops-made
// MERGED-NEXT:      (S) 1 num-ops-removed
// MERGED-NEXT:    CanonicalizePass (canonicalize)
// MERGED-NOT:     CSEPass
// JSON:           ['(parse)', '(verify)', 'cse', '(print)', '(rest)', 'Total']
// LIST:           ----Name----
// LIST:           (100.0%) Total
// AGAIN:          arith.addi
// AGAIN-NOT:      arith.addi
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}
