// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{tensor-threshold=4KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=TENSOR
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{peak-threshold=8KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=PEAK
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{jump-threshold=3KiB}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=JUMP
// RUN: %braid-opt %S/Inputs/rematerialization-edges.mlir -p "select-rematerialization{fusion-rules=default}" --remarks -o /dev/null 2>&1 | grep -o 'recompute .* by .*' | filecheck %s --check-prefix=FUSION

// Each criterion alone. The file of edges lists the criteria that each edge satisfies.

// TENSOR:      recompute large for large_end: 8 KiB by tensor
// TENSOR-NEXT: recompute large_calm for large_calm_mid: 5 KiB by tensor
// TENSOR-NEXT: recompute large_calm for large_calm_end: 5 KiB by tensor
// TENSOR-NEXT: recompute large_high for large_high_mid: 5 KiB by tensor
// TENSOR-NEXT: recompute large_high for large_high_end: 5 KiB by tensor
// TENSOR-NEXT: recompute large_jump for large_jump_end: 8 KiB by tensor
// TENSOR-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by tensor
// TENSOR-NEXT: recompute every for every_mid: 8 KiB by tensor
// TENSOR-NEXT: recompute every for every_end: 8 KiB by tensor
// TENSOR-NOT:  recompute

// PEAK:      recompute skip for skip_end: 1 KiB by peak
// PEAK-NEXT: recompute large_high for large_high_end: 5 KiB by peak
// PEAK-NEXT: recompute every for every_end: 8 KiB by peak
// PEAK-NOT:  recompute

// JUMP:      recompute jump for jump_end: 4 KiB by jump
// JUMP-NEXT: recompute large_jump for large_jump_end: 8 KiB by jump
// JUMP-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by jump
// JUMP-NEXT: recompute every for every_mid: 8 KiB by jump
// JUMP-NEXT: recompute every for every_end: 8 KiB by jump
// JUMP-NOT:  recompute

// FUSION:      recompute skip for skip_end: 1 KiB by fusion
// FUSION-NEXT: recompute calm for calm_end: 1 KiB by fusion
// FUSION-NEXT: recompute fusible for fusible_end: 256 B by fusion
// FUSION-NEXT: recompute large_calm for large_calm_end: 5 KiB by fusion
// FUSION-NEXT: recompute large_high for large_high_end: 5 KiB by fusion
// FUSION-NEXT: recompute fusible_jump for fusible_jump_end: 8 KiB by fusion
// FUSION-NEXT: recompute every for every_end: 8 KiB by fusion
// FUSION-NOT:  recompute
