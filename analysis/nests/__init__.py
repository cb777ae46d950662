"""Loop nests over strided tensors: the iteration spaces of kernels, and the places of their tensors
in memory.

A nest is derived from a group and the layouts of its tensors; it knows no machine and emits
nothing. Each class of nests is one file:

- `pointwise`: elementwise ops, one result element per iteration
- `contraction`: sums of products, with elementwise ops on the result
- `matmul`, `convolution`: the contractions of groups with a matmul or a convolution
- `windows`: reductions of image windows, with zero padding
- `pooling`: recognizes poolings
- `winograd`: convolutions by tiles of several results
- `rows`: a reduction, with elementwise ops before and after it
- `normalization`: softmax and layer normalization, and the strides of scales
- `scan`, `selection`: prefix combinations of lines, and their first or largest elements
- `lines`: the lines of scans, selections and softmax
- `scatter`: slices, and the indices to which they are written
- `concat`: pieces that lie next to each other
- `permutation`: copies that bring elements into another order
- `padding`: the operand inside of the result, and the border around it
- `runs`: gathers at known positions, as arithmetic progressions
- `dims`: the loop dims of all classes
"""
