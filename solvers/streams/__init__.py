"""Streams between processes of fixed schedules: cycles, and how deep channels have to be."""

from braid.solvers.streams.depths import Depths, fewest_depths
from braid.solvers.streams.fill_levels import fill_levels
from braid.solvers.streams.network import SINK, SOURCE, Channel, Network, Process
from braid.solvers.streams.timing import Times, earliest

__all__ = [
    "SINK",
    "SOURCE",
    "Channel",
    "Depths",
    "Network",
    "Process",
    "Times",
    "earliest",
    "fewest_depths",
    "fill_levels",
]
