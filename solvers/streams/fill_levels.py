"""Count the beats that channels hold, cycle by cycle."""

import numpy as np

from braid.solvers.streams.network import Integers, Network
from braid.solvers.streams.timing import Times


def fill_levels(network: Network, times: Times) -> list[Integers]:
    """Return for each channel the places that are taken in each cycle from 0 to the last one.

    A place is taken in the cycle in which the iteration that writes begins, and free in the one
    after that of the iteration that reads.
    """
    cycles = times.cycles(network)
    levels: list[Integers] = []
    for channel in network.channels:
        takes, frees = times.places(network, channel)
        taken = np.bincount(takes, minlength=cycles)[:cycles]
        freed = np.bincount(frees + 1, minlength=cycles)[:cycles]
        levels.append(np.cumsum(taken - freed))
    return levels
