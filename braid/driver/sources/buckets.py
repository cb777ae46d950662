"""Parse the sizes of a model's open dims to compile for, as users give them."""

from collections.abc import Mapping, Sequence
from math import prod

from braid.dialects.braid.attribute_names import PADDED_FROM
from braid.dialects.braid.variants import sizes_attribute
from braid.driver.sources.open_model import Bounds, Buckets, OnnxSource, OpenModel
from braid.driver.sources.padding import Paddings, find_paddings, no_paddings
from braid.driver.sources.possible_sizes import one_for_equal, possible_variants
from braid.driver.sources.signature import signature_of
from braid.driver.sources.source_model import SourceModel
from braid.driver.sources.variants import merge_variants, output_dims, output_shapes
from braid.frontends.onnx.fixed_inputs import NOTHING_FIXED, Fixed
from braid.support.errors import BraidError, did_you_mean, whole_numbers
from braid.support.option_names import option_text

_MOST_VARIANTS = 64


def read_bucketed(
    source: OnnxSource,
    *,
    buckets: Buckets | None = None,
    bounds: Bounds | None = None,
    fixed: Fixed = NOTHING_FIXED,
) -> SourceModel:
    """Read an ONNX model with a variant for each combination of sizes of its open dims.

    `buckets` gives the sizes by the names of the dims; other sizes below them are padded up where
    that provably gives the same results. `bounds` gives the largest size: the buckets are then the
    powers of two below it and itself, and padding must be possible. `fixed` has the other known
    values of inputs. Dims that can only be equal are one dim, and sizes at which the model is not
    valid are left out; remarks say which.

    Raises:
        BraidError: the model cannot be read, a dim is unknown, left open or given twice, a size
            is not positive, no size is valid or one of `buckets` never is, there are more than 64
            variants, or a dim with a bound cannot be padded.

    """
    model = OpenModel(source, fixed)
    model, sizes = one_for_equal(model, _chosen_sizes(model, buckets or {}, bounds or {}))
    _check_count(sizes)
    possible = possible_variants(model, sizes, buckets or {})
    sizes, variants = possible.sizes, possible.variants
    paddings = find_paddings(model, sizes) if possible.is_grid else no_paddings(sizes)
    observed = [(v.sizes, output_shapes(v.imported)) for v in variants] + paddings.observed
    outputs = output_dims(observed)
    first = variants[0].imported.module
    names = [spec.name for spec in signature_of(first)[1]]
    whole = [name for name, (_, explained) in zip(names, outputs, strict=True) if not explained]
    _require_padding([d for d in sizes if d in (bounds or {})], sizes, paddings, whole)
    inputs = [model.input_dims(spec.name) for spec in signature_of(first)[0]]
    merged = merge_variants(variants, model.initializers(), inputs, [dims for dims, _ in outputs])
    if paddings.least and not whole:
        merged.module.attributes[PADDED_FROM] = sizes_attribute(paddings.least)
    return SourceModel(model.name, merged.module, merged.parameters)


def _chosen_sizes(model: OpenModel, buckets: Buckets, bounds: Bounds) -> dict[str, list[int]]:
    known = model.dims
    names = ", ".join(f"'{dim}'" for dim in known)
    listed = f"its open dims are {names}" if names else "none of its dims is open"
    chosen: dict[str, list[int]] = {}
    for name in (*buckets, *bounds):
        if name in model.fixed_sizes:
            raise BraidError(
                f"dim '{name}' is fixed at {model.fixed_sizes[name]}, and has other sizes too",
                hint="leave out its sizes, or what fixes it: its size, or the shape or value of "
                "an input",
            )
        if name not in known:
            raise BraidError(
                f"the model has no open dim '{name}'",
                hint=did_you_mean(str(name), known) or listed,
            )
        if name in buckets and name in bounds:
            raise BraidError(f"dim '{name}' has both buckets and a bound")
        given = buckets[name] if name in buckets else [bounds[name]]
        sizes = whole_numbers(given)
        if not sizes or min(sizes) < 1:
            found = f"sizes of dim '{name}' are {given}, expected a list of sizes"
            if name in bounds:
                found = f"the bound of dim '{name}' is {bounds[name]!r}, expected a size"
            raise BraidError(
                f"{found} of at least 1",
                hint=f"such as {option_text('shape_buckets', {name: (1, 8)})} or "
                f"{option_text('shape_bounds', {name: 8})}",
            )
        chosen[name] = sorted(set(sizes)) if name in buckets else _powers_of_two(*sizes)
    if left := [dim for dim in known if dim not in chosen]:
        raise BraidError(
            f"dims of inputs are left open: {', '.join(repr(dim) for dim in left)}",
            hint="give sizes for them too, such as "
            f"{option_text('shape_buckets', {left[0]: (1, 2, 4)})}, or one: "
            f"{option_text('dims', {left[0]: 1})}",
        )
    return {dim: chosen[dim] for dim in known}


def _check_count(sizes: Mapping[str, Sequence[int]]) -> None:
    count = prod(map(len, sizes.values()))
    if count > _MOST_VARIANTS:
        raise BraidError(
            f"{count} combinations of sizes would be compiled, expected at most {_MOST_VARIANTS}",
            hint="give fewer sizes, or fix a dim with "
            f"{option_text('dims', {next(iter(sizes)): 1})}",
        )


def _powers_of_two(bound: int) -> list[int]:
    return [*(1 << e for e in range(bound.bit_length()) if 1 << e < bound), bound]


def _require_padding(
    bounds: Sequence[str], sizes: Mapping[str, Sequence[int]], found: Paddings, whole: Sequence[str]
) -> None:
    """Raise BraidError where a dim with a bound is not padded, or outputs `whole` are not cut."""
    for name in bounds:
        if name in found.reasons:
            reason = found.reasons[name]
        elif whole:
            reason = f"no open dim says how much of output '{whole[0]}' is left"
        else:
            continue
        raise BraidError(
            f"dim '{name}' cannot be padded, so a bound for it is not enough: {reason}",
            hint="give the sizes that will be used, such as "
            f"{option_text('shape_buckets', {name: sizes[name]})}",
        )
