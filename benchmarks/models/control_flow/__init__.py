"""Six models whose time goes into branches and loops, with random weights and fixed seeds."""

from benchmarks.models.control_flow.beam_decoder import make_beam_decoder
from benchmarks.models.control_flow.conv_gru import make_conv_gru
from benchmarks.models.control_flow.early_exit import make_early_exit
from benchmarks.models.control_flow.equilibrium import make_equilibrium
from benchmarks.models.control_flow.keyframes import make_keyframes
from benchmarks.models.control_flow.unrolled import make_unrolled

MODELS = {
    "beam_decoder": make_beam_decoder,
    "conv_gru": make_conv_gru,
    "early_exit": make_early_exit,
    "equilibrium": make_equilibrium,
    "keyframes": make_keyframes,
    "unrolled": make_unrolled,
}
"""Name to what makes the model."""

__all__ = ["MODELS"]
