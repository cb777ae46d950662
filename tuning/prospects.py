"""Estimate the gain of measuring more of a space, by the spread of its measurements.

Logarithms of times count as a random sample of a normal distribution whose mean and variance are
not known, so that the next one follows Student's t (Gelman et al., "Bayesian Data Analysis", 3rd
ed., section 3.2). Its expected gain over an incumbent is the criterion of Mockus ("On Bayesian
methods for seeking the extremum", 1975). Spaces begin with the most promising schedules, and times
are skewed towards slow ones: so the remaining schedules are less promising than estimated here.
"""

import math
import statistics
from collections.abc import Sequence

LEAST_SAMPLE = 3
"""Times below which an expectation of gain is infinite, for want of degrees of freedom."""


def expected_gain(times: Sequence[float], left: int, incumbent: float) -> float:
    """Return a bound of the expected logarithm of incumbent ÷ the best of `left` more times, or 0.

    All are in the same unit. The bound is the sum over these times, which is close where a gain is
    unlikely.
    """
    if left == 0:
        return 0.0
    if len(times) < LEAST_SAMPLE or min(*times, incumbent) <= 0:
        return math.inf
    logs = [math.log(time) for time in times]
    mean, degrees = statistics.fmean(logs), len(logs) - 1
    scale = statistics.stdev(logs, mean) * math.sqrt(1 + 1 / len(logs))
    lead = math.log(incumbent) - mean
    if scale == 0:
        return left * max(0.0, lead)
    return left * scale * _mean_below(lead / scale, degrees)


def _mean_below(x: float, degrees: int) -> float:
    """Return the mean of max(0, x − T), where T follows Student's t with at least two degrees."""
    tail = (degrees + x * x) / (degrees - 1) * _density(x, degrees)
    return max(0.0, x * _probability(x, degrees) + tail)


def _density(x: float, degrees: int) -> float:
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    power = (1 + x * x / degrees) ** (-(degrees + 1) / 2)
    return math.exp(log_scale) / math.sqrt(degrees * math.pi) * power


def _probability(x: float, degrees: int) -> float:
    """Return P(T ≤ x): Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and
    26.7.4.
    """
    angle = math.atan(x / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for number in range(odd, degrees - 1, 2):
        total += term
        term *= (number + 1) / (number + 2) * cosine * cosine
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return (1 + inside) / 2
