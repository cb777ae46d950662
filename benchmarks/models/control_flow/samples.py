"""Seeded inputs of the models with control flow, whose branches and trip counts depend on them."""

from typing import Any

import numpy as np

from benchmarks.models.control_flow import conv_gru, early_exit, equilibrium, keyframes, unrolled
from benchmarks.models.control_flow.beam_decoder import SIDE

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 10
EASY = 8
"""The number of images with full contrast among `COUNT` for the early exit; a network is sure of
these."""
SCENE = 7
"""Frames between two cuts of a video."""


def samples(name: str, seed: int = 1) -> list[dict[str, Array]]:
    """`COUNT` inputs of the model `name`."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 1.0) -> Array:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    def video() -> Array:
        frames: list[Array] = []
        for index in range(keyframes.FRAMES):
            image = normal(3, 2 * keyframes.SIDE, 2 * keyframes.SIDE)
            scene_goes_on = index % SCENE != 0
            frames.append(frames[-1] + np.float32(0.02) * image if scene_goes_on else image)
        return np.stack(frames)

    makers = {
        "beam_decoder": lambda _: {"image": normal(1, 3, 4 * SIDE, 4 * SIDE)},
        "conv_gru": lambda _: {
            "frames": normal(conv_gru.FRAMES, conv_gru.CHANNELS, conv_gru.SIDE, conv_gru.SIDE),
            "state": normal(1, conv_gru.WIDTH, conv_gru.SIDE, conv_gru.SIDE),
        },
        "early_exit": lambda index: {
            "image": normal(
                1, 3, 2 * early_exit.SIDE, 2 * early_exit.SIDE, scale=1 if index < EASY else 0.05
            )
        },
        "equilibrium": lambda _: {
            "context": normal(*equilibrium.SHAPE),
            "state": normal(*equilibrium.SHAPE),
        },
        "keyframes": lambda _: {"frames": video()},
        "unrolled": lambda _: {"measured": normal(*unrolled.SHAPE)},
    }
    return [makers[name](index) for index in range(COUNT)]
