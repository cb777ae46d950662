"""Kernels of the CPU. Each file of this folder is a kernel family, as `targets/host.toml` names it.

A family takes some groups of ops and writes the kernel of each; see `KernelFamily`. What families
are made of lies in the folders, each of which imports only those below it:

- `conv`, `windows`, `tiles`, `padding`: what a few families are made of: convolutions; kernels over
  windows of images; groups computed tile by tile; paddings
- `contraction`, `transpose`: the loops of products and of copies that permute elements
- `pointwise`: elementwise ops, as kernels of their own and at the end of others
- `groups`: what families ask about a group: its layouts, the loops over it, what it moves
- `emit`: writing code: vectors, loops, buffers, the function around a kernel
"""
