"""Kernels of the CPU: each file here is a kernel family, listed in `families.py`.

A family says which groups of ops it takes, in which layouts and how fast, and emits their kernels;
see `KernelFamily`. The folders hold the parts of families. Each imports only those below it:

- `windows`: ops on windows of images (`conv_depthwise`, `conv_grouped`, `pooling`)
- `tiles`: groups of several products and reductions, computed tile by tile (`tiled`)
- `selection`: the first elements of rows: keys, candidates, sorts (`top_k`, `arg_reduce`)
- `winograd`: convolutions with fewer products (`conv_winograd`)
- `amx`: the arithmetic of the tile registers of AMX (`gemm`, `conv_direct`)
- `contraction`: products, and the arithmetics of vectors (`gemm`, `conv_direct`)
- `copies`: strided copies, transposes, and borders (`movement`, `pad`, `tiled`)
- `fourier`: transforms of signals, step by step (`fft`)
- `rows`: reductions, softmax and layer normalization (`reduction`, `normalization`)
- `pointwise`: elementwise ops, alone (`elementwise`) and after the ops of other families
- `groups`: the base of all families, and their questions about a group: layouts, loops, traffic

Below them all are `lowering/cpu/unit` and `lowering/emit`.
"""
