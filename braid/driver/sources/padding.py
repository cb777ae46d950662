"""Find the sizes of open dims that may be padded up to sizes that a model is compiled for.

Inputs are padded with zeros at their ends, and of the outputs the first elements are taken. This is
right if the model at the smaller size provably computes the same elements as at the larger size.
There are finitely many sizes, so each is imported and compared, without conclusions from one size
about another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp

from braid.analysis.structure.prefix import NotAPrefix, is_prefix, prove_prefix
from braid.dialects.braid.decomposition import decompose_all
from braid.driver.sources.open_model import OpenModel, Sizes, combinations
from braid.driver.sources.signature import entry_of
from braid.driver.sources.variants import OutputShapes, output_shapes
from braid.frontends.onnx import ImportedModel
from braid.support.errors import BraidError

_MOST_COMPARISONS = 1024


@dataclass
class Paddings:
    """`least` has, by open dim, the size from which on sizes may be padded, with reasons why other
    dims have none.

    `observed` are the shapes of the outputs at every size that was looked at.
    """

    least: Sizes = field(default_factory=dict[str, int])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    observed: list[tuple[Sizes, OutputShapes]] = field(
        default_factory=list[tuple[Sizes, OutputShapes]]
    )


def find_paddings(model: OpenModel, buckets: Mapping[str, Sequence[int]]) -> Paddings:
    """Decide for each dim from which size on it may be padded."""
    search = _PaddingSearch(model, buckets)
    for dim in buckets:
        search.decide(dim)
    return search.paddings


def no_paddings(buckets: Mapping[str, Sequence[int]]) -> Paddings:
    """Return that no dim may be padded, for models that are not valid at all combinations."""
    reason = "the model is not valid at every combination of sizes"
    return Paddings(reasons=dict.fromkeys(buckets, reason))


class _Invalid(Exception):
    """The model is not valid at a size, whatever the other sizes are."""


class _PaddingSearch:
    def __init__(self, model: OpenModel, buckets: Mapping[str, Sequence[int]]) -> None:
        self._model = model
        self._buckets = buckets
        self._initializers = model.initializers()
        self._large: dict[tuple[int, ...], tuple[ImportedModel, FuncOp]] = {}
        self._served = {name: list(sizes) for name, sizes in buckets.items()}
        self._tried = 0
        self.paddings = Paddings()

    def decide(self, dim: str) -> None:
        """Go down from the largest size until there is no proof, or no valid model.

        Sizes below an invalid one are not padded; valid ones among them then have no variant.
        """
        invalid: int | None = None
        sizes = [s for s in range(max(self._buckets[dim]), 0, -1) if s not in self._buckets[dim]]
        for size in sizes:
            try:
                self._prove({**self._served, dim: [size]})
            except _Invalid:
                invalid = size
                continue
            except NotAPrefix as reason:
                self.paddings.reasons[dim] = str(reason)
                return
            if invalid is not None:
                reason = f"the model is valid at {dim}={size}, but not at {dim}={invalid}"
                self.paddings.reasons[dim] = reason
                return
            self.paddings.least[dim] = size
            self._served[dim].append(size)

    def _prove(self, served: Mapping[str, Sequence[int]]) -> None:
        """Prove all combinations; raises _Invalid if the model is valid at none of them."""
        errors: list[BraidError] = []
        valid = 0
        for sizes in combinations(served):
            self._tried += 1
            if self._tried > _MOST_COMPARISONS:
                raise NotAPrefix(f"more than {_MOST_COMPARISONS} sizes would have to be compared")
            try:
                small = self._model.at(sizes)
            except BraidError as error:
                errors.append(error)
                continue
            valid += 1
            self._compare(sizes, small)
        if errors and valid:
            raise NotAPrefix(errors[0].message)
        if errors:
            raise _Invalid

    def _compare(self, sizes: Sizes, small: ImportedModel) -> None:
        above = {
            name: min(bucket for bucket in self._buckets[name] if bucket >= size)
            for name, size in sizes.items()
        }
        large, large_function = self._import_large(above)
        decompose_all(small.module)

        def agree(small_key: str, large_key: str) -> bool:
            if small_key == large_key and small_key in self._initializers:
                return True
            return is_prefix(small.parameters[small_key], large.parameters[large_key])

        prove_prefix(entry_of(small.module), large_function, agree)
        self.paddings.observed.append((sizes, output_shapes(small)))

    def _import_large(self, sizes: Sizes) -> tuple[ImportedModel, FuncOp]:
        key = tuple(sizes.values())
        if key not in self._large:
            imported = self._model.at(sizes)
            decompose_all(imported.module)
            self._large[key] = imported, entry_of(imported.module)
        return self._large[key]
