"""Functions of JAX as models."""

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import braid

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")


def test_what_is_no_function_is_an_error() -> None:
    wrong: Any = 3
    with pytest.raises(braid.BraidError, match="was given a int, expected a function"):
        braid.from_jax(wrong)


def test_without_jax_the_message_says_how_to_install_it() -> None:
    script = """import sys
sys.modules["jax"] = None  # as Python does for what cannot be imported
import braid
try:
    braid.from_jax(lambda x: x, 1)
except braid.BraidError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "error: from_jax needs jax" in found.stdout
    assert "pip install 'braid-compiler[jax]'" in found.stdout


@needs_jax
def test_trees_and_arguments_that_are_not_used() -> None:
    import jax
    import jax.numpy as jnp

    def function(tree: Any, unused: Any) -> Any:
        return {"sum": tree["a"] + tree["b"], "sorted": jnp.sort(tree["a"])}

    tree = {"b": np.float32([1, 2, 3]), "a": np.float32([3, -1, 2])}
    exported = braid.from_jax(jax.jit(function), tree, np.zeros(2, np.int32))
    found = braid.compile(exported)(tree["a"], tree["b"], np.zeros(2, np.int32))
    expected = jax.tree.leaves(function(tree, None))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)


@needs_jax
def test_open_dims() -> None:
    import jax
    import jax.numpy as jnp
    from jax import export

    shape = export.symbolic_shape("batch, 4")
    exported = braid.from_jax(
        lambda x: jnp.tanh(x).sum(1), jax.ShapeDtypeStruct(shape, jnp.float32)
    )
    model = braid.compile(exported)
    for batch in (1, 5):
        x = np.random.default_rng(0).standard_normal((batch, 4), np.float32)
        np.testing.assert_allclose(model(x), np.tanh(x).sum(1), rtol=1e-4, atol=1e-6)


@needs_jax
def test_what_jax_cannot_trace_is_an_error() -> None:
    message = r"JAX cannot export the function: \w*Error: "
    with pytest.raises(braid.BraidError, match=message) as caught:
        braid.from_jax(lambda x: x if x > 0 else -x, np.float32(1))
    assert caught.value.hint is not None and "jax.jit" in caught.value.hint
