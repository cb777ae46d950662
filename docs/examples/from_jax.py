"""Compile a training step that is written in JAX.

Needs JAX: pip install 'braid-compiler[jax]'.
"""

import sys
from importlib.util import find_spec

import numpy as np

import braid


def main() -> None:
    """Export, compile, and compare with JAX."""
    import jax
    import jax.numpy as jnp

    def loss(params, x, labels):
        hidden = jax.nn.relu(x @ params["in"])
        scores = jax.nn.log_softmax(hidden @ params["out"])
        return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()

    def step(params, x, labels):
        gradients = jax.grad(loss)(params, x, labels)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    numbers = np.random.default_rng(0)
    params = {
        "in": numbers.standard_normal((20, 32), np.float32),
        "out": numbers.standard_normal((32, 10), np.float32),
    }
    x, labels = numbers.standard_normal((16, 20), np.float32), numbers.integers(0, 10, 16, np.int32)
    model = braid.compile(braid.from_jax(step, params, x, labels))
    # Inputs and outputs are the leaves of the trees.
    found = model(*jax.tree.leaves((params, x, labels)))
    for own, others in zip(found, jax.tree.leaves(step(params, x, labels)), strict=True):
        difference = np.abs(own - others).max()
        print(f"{own.shape}: differs from JAX by {difference:.1e}")
        assert difference < 1e-5


if __name__ == "__main__":
    if find_spec("jax") is None:
        print("this example needs JAX: pip install 'braid-compiler[jax]'")
        sys.exit()
    main()
