"""Products of matrices by tiles in shared memory: problem, copies, arithmetic, epilogue."""
