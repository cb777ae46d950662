// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB jump-threshold=3KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-JUMP
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB jump-threshold=3KiB mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-JUMP-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-FUSION-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB jump-threshold=3KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-JUMP
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB jump-threshold=3KiB mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-JUMP-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-FUSION-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{jump-threshold=3KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=JUMP-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{jump-threshold=3KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=JUMP-FUSION-ALL

// Two criteria at a time. The file of edges lists the criteria that each edge satisfies.
// With tensor and peak, tensor applies to edges without an indirect path and peak to the others.

// TENSOR-PEAK:      recompute large for large_end: 8 KiB by tensor
// TENSOR-PEAK-NEXT: recompute skip for skip_end: 1 KiB by peak
// TENSOR-PEAK-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-PEAK-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-PEAK-NEXT: recompute large_high for large_high_end: 5 KiB by peak
// TENSOR-PEAK-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor
// TENSOR-PEAK-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor
// TENSOR-PEAK-NEXT: recompute every for every_mid: 8 KiB by tensor
// TENSOR-PEAK-NEXT: recompute every for every_end: 8 KiB by peak
// TENSOR-PEAK-NOT:  recompute

// TENSOR-PEAK-ALL:      recompute large for large_end: 8 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute skip for skip_end: 1 KiB by peak
// TENSOR-PEAK-ALL-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute large_high for large_high_end: 5 KiB by peak
// TENSOR-PEAK-ALL-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute every for every_mid: 8 KiB by tensor
// TENSOR-PEAK-ALL-NEXT: recompute every for every_end: 8 KiB by peak
// TENSOR-PEAK-ALL-NOT:  recompute

// TENSOR-JUMP:      recompute large for large_end: 8 KiB by tensor
// TENSOR-JUMP-NEXT: recompute jump for jump_end: 4 KiB by jump
// TENSOR-JUMP-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-JUMP-NEXT: recompute large_calm for large_calm_end: 5 KiB by tensor
// TENSOR-JUMP-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-JUMP-NEXT: recompute large_high for large_high_end: 5 KiB by tensor
// TENSOR-JUMP-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-JUMP-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump
// TENSOR-JUMP-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-JUMP-NEXT: recompute every for every_end: 8 KiB by tensor and jump
// TENSOR-JUMP-NOT:  recompute

// TENSOR-JUMP-ALL:      recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-JUMP-ALL-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump
// TENSOR-JUMP-ALL-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-JUMP-ALL-NEXT: recompute every for every_end: 8 KiB by tensor and jump
// TENSOR-JUMP-ALL-NOT:  recompute

// TENSOR-FUSION:      recompute large for large_end: 8 KiB by tensor
// TENSOR-FUSION-NEXT: recompute skip for skip_end: 1 KiB by fusion
// TENSOR-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// TENSOR-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// TENSOR-FUSION-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by tensor and fusion
// TENSOR-FUSION-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by tensor and fusion
// TENSOR-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor
// TENSOR-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and fusion
// TENSOR-FUSION-NEXT: recompute every for every_mid: 8 KiB by tensor
// TENSOR-FUSION-NEXT: recompute every for every_end: 8 KiB by tensor and fusion
// TENSOR-FUSION-NOT:  recompute

// TENSOR-FUSION-ALL:      recompute large_calm for large_calm_end: 5 KiB by tensor and fusion
// TENSOR-FUSION-ALL-NEXT: recompute large_high for large_high_end: 5 KiB by tensor and fusion
// TENSOR-FUSION-ALL-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and fusion
// TENSOR-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by tensor and fusion
// TENSOR-FUSION-ALL-NOT:  recompute

// PEAK-JUMP:      recompute skip for skip_end: 1 KiB by peak
// PEAK-JUMP-NEXT: recompute jump for jump_end: 4 KiB by jump
// PEAK-JUMP-NEXT: recompute large_high for large_high_end: 5 KiB by peak
// PEAK-JUMP-NEXT: recompute large_jump for large_jump_end: 8 KiB by jump
// PEAK-JUMP-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by jump
// PEAK-JUMP-NEXT: recompute every for every_mid: 8 KiB by jump
// PEAK-JUMP-NEXT: recompute every for every_end: 8 KiB by peak and jump
// PEAK-JUMP-NOT:  recompute

// PEAK-JUMP-ALL:      recompute every for every_end: 8 KiB by peak and jump
// PEAK-JUMP-ALL-NOT:  recompute

// PEAK-FUSION:      recompute skip for skip_end: 1 KiB by peak and fusion
// PEAK-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// PEAK-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// PEAK-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// PEAK-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// PEAK-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by fusion
// PEAK-FUSION-NEXT: recompute every for every_end: 8 KiB by peak and fusion
// PEAK-FUSION-NOT:  recompute

// PEAK-FUSION-ALL:      recompute skip for skip_end: 1 KiB by peak and fusion
// PEAK-FUSION-ALL-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// PEAK-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by peak and fusion
// PEAK-FUSION-ALL-NOT:  recompute

// JUMP-FUSION:      recompute skip for skip_end: 1 KiB by fusion
// JUMP-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// JUMP-FUSION-NEXT: recompute jump for jump_end: 4 KiB by jump
// JUMP-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// JUMP-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// JUMP-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by fusion
// JUMP-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by jump
// JUMP-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by jump and fusion
// JUMP-FUSION-NEXT: recompute every for every_mid: 8 KiB by jump
// JUMP-FUSION-NEXT: recompute every for every_end: 8 KiB by jump and fusion
// JUMP-FUSION-NOT:  recompute

// JUMP-FUSION-ALL:      recompute fusible_jump for fusible_jump_end: 8 KiB by jump and fusion
// JUMP-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by jump and fusion
// JUMP-FUSION-ALL-NOT:  recompute
