// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB jump-threshold=3KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-JUMP
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB jump-threshold=3KiB mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-JUMP-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-FUSION-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB jump-threshold=3KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-JUMP-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB jump-threshold=3KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-JUMP-FUSION-ALL
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB jump-threshold=3KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-JUMP-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB jump-threshold=3KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK-JUMP-FUSION-ALL

// Three criteria at a time. The file of edges lists the criteria that each edge satisfies.

// TENSOR-PEAK-JUMP:      recompute large for large_end: 8 KiB by tensor
// TENSOR-PEAK-JUMP-NEXT: recompute skip for skip_end: 1 KiB by peak
// TENSOR-PEAK-JUMP-NEXT: recompute jump for jump_end: 4 KiB by jump
// TENSOR-PEAK-JUMP-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-PEAK-JUMP-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-PEAK-JUMP-NEXT: recompute large_high for large_high_end: 5 KiB by peak
// TENSOR-PEAK-JUMP-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-NEXT: recompute every for every_end: 8 KiB by peak and jump
// TENSOR-PEAK-JUMP-NOT:  recompute

// TENSOR-PEAK-JUMP-ALL:      recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-ALL-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-ALL-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-ALL-NEXT: recompute every for every_end: 8 KiB by peak and jump
// TENSOR-PEAK-JUMP-ALL-NOT:  recompute

// TENSOR-PEAK-FUSION:      recompute large for large_end: 8 KiB by tensor
// TENSOR-PEAK-FUSION-NEXT: recompute skip for skip_end: 1 KiB by peak and fusion
// TENSOR-PEAK-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// TENSOR-PEAK-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// TENSOR-PEAK-FUSION-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-PEAK-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// TENSOR-PEAK-FUSION-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-PEAK-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// TENSOR-PEAK-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor
// TENSOR-PEAK-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and fusion
// TENSOR-PEAK-FUSION-NEXT: recompute every for every_mid: 8 KiB by tensor
// TENSOR-PEAK-FUSION-NEXT: recompute every for every_end: 8 KiB by peak and fusion
// TENSOR-PEAK-FUSION-NOT:  recompute

// TENSOR-PEAK-FUSION-ALL:      recompute skip for skip_end: 1 KiB by peak and fusion
// TENSOR-PEAK-FUSION-ALL-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// TENSOR-PEAK-FUSION-ALL-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and fusion
// TENSOR-PEAK-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by peak and fusion
// TENSOR-PEAK-FUSION-ALL-NOT:  recompute

// TENSOR-JUMP-FUSION:      recompute large for large_end: 8 KiB by tensor
// TENSOR-JUMP-FUSION-NEXT: recompute skip for skip_end: 1 KiB by fusion
// TENSOR-JUMP-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// TENSOR-JUMP-FUSION-NEXT: recompute jump for jump_end: 4 KiB by jump
// TENSOR-JUMP-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// TENSOR-JUMP-FUSION-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-JUMP-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by tensor and fusion
// TENSOR-JUMP-FUSION-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-JUMP-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by tensor and fusion
// TENSOR-JUMP-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-JUMP-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump and fusion
// TENSOR-JUMP-FUSION-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-JUMP-FUSION-NEXT: recompute every for every_end: 8 KiB by tensor and jump and fusion
// TENSOR-JUMP-FUSION-NOT:  recompute

// TENSOR-JUMP-FUSION-ALL:      recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump and fusion
// TENSOR-JUMP-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by tensor and jump and fusion
// TENSOR-JUMP-FUSION-ALL-NOT:  recompute

// PEAK-JUMP-FUSION:      recompute skip for skip_end: 1 KiB by peak and fusion
// PEAK-JUMP-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// PEAK-JUMP-FUSION-NEXT: recompute jump for jump_end: 4 KiB by jump
// PEAK-JUMP-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// PEAK-JUMP-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// PEAK-JUMP-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// PEAK-JUMP-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by jump
// PEAK-JUMP-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by jump and fusion
// PEAK-JUMP-FUSION-NEXT: recompute every for every_mid: 8 KiB by jump
// PEAK-JUMP-FUSION-NEXT: recompute every for every_end: 8 KiB by peak and jump and fusion
// PEAK-JUMP-FUSION-NOT:  recompute

// PEAK-JUMP-FUSION-ALL:      recompute every for every_end: 8 KiB by peak and jump and fusion
// PEAK-JUMP-FUSION-ALL-NOT:  recompute
