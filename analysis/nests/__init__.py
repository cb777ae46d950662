"""Loop nests over strided tensors: what kernels iterate over, and where their tensors lie.

A nest is derived from a group and the layouts of its tensors; it knows no machine and emits
nothing. Each class of nests is one file:

- `pointwise`: elementwise ops, one result element per iteration
- `contraction`: sums of products, with elementwise ops on the result
- `matmul`, `convolution`: which groups are a product, and their contraction in some layouts
- `windows`: what is made of the windows of images, and the zeros around these
- `pooling`: which groups are a pooling
- `winograd`: convolutions by tiles of several results
- `rows`: a reduction, with elementwise ops before and after it
- `normalization`: softmax and layer normalization, and where scales lie
- `scan`, `selection`: lines in which elements are combined, or the first ones are wanted
- `lines`: what these go through, and softmax
- `scatter`: slices, and the indices that say where they go
- `concat`: pieces that lie next to each other
- `permutation`: copies that bring elements into another order
- `padding`: the operand inside of the result, and the border around it
- `runs`: gathers at known positions, as arithmetic progressions
- `dims`: the loop dims that all classes are made of
"""
