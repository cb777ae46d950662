"""The program: what remains of a model after its kernels, as code on raw pointers.

`emit_program` walks a planned function; it has `values` for where tensors and scalars are,
`control_flow` for `scf`, `kernel_calls` and `inter_op_sections` for calls, `profile_counters` for
counters. `variants` and `descriptor` make a model of the programs. `codegen` takes modules in
upstream dialects to objects, shared libraries and loaded code.
"""
