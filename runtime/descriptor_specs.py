"""Read inputs, outputs and dims from the descriptor that a model's code holds."""

from collections.abc import Sequence
from dataclasses import replace

from braid.runtime.dtypes import dtype_name
from braid.runtime.manifest import DimSpec, TensorSpec
from braid.runtime.native_abi import CModel, COpen, CTensor


def dims_of(descriptor: CModel) -> tuple[DimSpec, ...]:
    """Return the dims of a model that are no numbers, with the sizes that it was compiled for."""
    variants = [descriptor.variants[i].sizes for i in range(descriptor.variant_count)]
    dims = [descriptor.dims[i] for i in range(descriptor.dim_count)]
    return tuple(
        DimSpec(dim.name.decode(), tuple(sorted({sizes[i] for sizes in variants})), dim.padded_from)
        for i, dim in enumerate(dims)
    )


def spec_of(tensor: CTensor, dims: Sequence[DimSpec]) -> TensorSpec:
    """Return an input or output of a descriptor, with the names of its open dims."""
    numbers = tensor.dims[: tensor.rank] if tensor.dims else list[int]()
    names = tuple("" if number < 0 else dims[number].name for number in numbers)
    return TensorSpec(
        tensor.name.decode(),
        dtype_name(tensor.dtype),
        tuple(tensor.shape[: tensor.rank]),
        tuple(tensor.bound[: tensor.rank]),
        names if any(names) else (),
    )


def with_value_sizes(
    inputs: Sequence[TensorSpec], descriptor: CModel, dims: Sequence[DimSpec]
) -> tuple[TensorSpec, ...]:
    """Return the inputs with the names of the sizes that their elements are."""
    values: dict[int, dict[int, str]] = {}
    if descriptor.open is not None:
        opened = COpen.from_address(descriptor.open)
        for own in (opened.values[i] for i in range(opened.value_count)):
            values.setdefault(own.input, {})[own.element] = dims[own.dim].name
    return tuple(
        replace(spec, values=tuple(name for _, name in sorted(values[i].items())))
        if i in values
        else spec
        for i, spec in enumerate(inputs)
    )
