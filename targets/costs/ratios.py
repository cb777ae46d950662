"""Estimate how far predictions of a kind are off, by others of the kind that were measured. No IR.

The ratio of measured to predicted time is averaged as a logarithm: half as long and twice as long
are equally wrong. Kinds are nested, from coarse to fine, such as all convolutions in f32, and the
convolutions among them that use each weight 64 to 128 times. From kind to kind the estimate moves
towards the median of the samples of that kind, which a few outliers do not move, the further the
more samples there are:

    estimate = (n * median + STRENGTH * estimate of the coarser kind) / (n + STRENGTH)

It begins with 0, a ratio of 1. So a kind without samples has the ratio of the coarser one, a kind
with few samples is in between, and without any measurement there is no ratio. (The mean of a normal
distribution whose prior mean is that of the coarser kind, worth STRENGTH samples, with the median
in place of the mean: A. Gelman et al., "Bayesian Data Analysis", section 2.5.)
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

STRENGTH = 2.0
"""The number of samples that the coarser kind counts as."""

FURTHEST = 1000.0
"""Ratios are clamped to this and its inverse, since an op that moves nothing takes 0 seconds."""


@dataclass(frozen=True)
class Sample:
    """The seconds of one item of all of `kinds`, from coarse to fine; `predicted` is more than
    0."""

    kinds: Sequence[str]
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """Measured ÷ predicted, between 1 / `FURTHEST` and `FURTHEST`."""
        return min(max(self.measured / self.predicted, 1 / FURTHEST), FURTHEST)


@dataclass(frozen=True)
class Ratios:
    """Measured ÷ predicted by kind: the logarithm of the median, and of how many samples."""

    medians: Mapping[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])

    @staticmethod
    def of(samples: Iterable[Sample]) -> "Ratios":
        """Return the ratios of the kinds of `samples`."""
        found: dict[str, list[float]] = {}
        for sample in samples:
            for kind in dict.fromkeys(sample.kinds):
                found.setdefault(kind, []).append(math.log(sample.ratio))
        return Ratios({kind: (median(logs), len(logs)) for kind, logs in found.items()})

    def of_kinds(self, kinds: Sequence[str]) -> float:
        """Return the factor for predictions of one of these kinds, from coarse to fine."""
        estimate = 0.0
        for kind in kinds:
            middle, count = self.medians.get(kind, (0.0, 0))
            estimate = (count * middle + STRENGTH * estimate) / (count + STRENGTH)
        return math.exp(estimate)
