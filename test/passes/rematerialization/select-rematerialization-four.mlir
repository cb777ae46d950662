// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB jump-threshold=3KiB fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-JUMP-FUSION
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB peak-threshold=8KiB jump-threshold=3KiB fusion-rules=default mode=all}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR-PEAK-JUMP-FUSION-ALL

// All four criteria. The file of edges lists the criteria that each edge satisfies.

// TENSOR-PEAK-JUMP-FUSION:      recompute large for large_end: 8 KiB by tensor
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute skip for skip_end: 1 KiB by peak and fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute jump for jump_end: 4 KiB by jump
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by peak and fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump and fusion
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute every for every_mid: 8 KiB by tensor and jump
// TENSOR-PEAK-JUMP-FUSION-NEXT: recompute every for every_end: 8 KiB by peak and jump and fusion
// TENSOR-PEAK-JUMP-FUSION-NOT:  recompute

// TENSOR-PEAK-JUMP-FUSION-ALL:      recompute fusible_jump for fusible_jump_end: 8 KiB by tensor and jump and fusion
// TENSOR-PEAK-JUMP-FUSION-ALL-NEXT: recompute every for every_end: 8 KiB by peak and jump and fusion
// TENSOR-PEAK-JUMP-FUSION-ALL-NOT:  recompute
