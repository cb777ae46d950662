"""Functions of JAX as models; JAX is only needed here."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from braid.support.checked_keywords import checks_arguments
from braid.support.distribution import install_command
from braid.support.errors import BraidError


@checks_arguments("braid.from_jax")
def from_jax(function: Callable[..., Any], *args: Any) -> bytes:
    """Export a function of JAX as a module of StableHLO, in text.

    All functions of braid take the result.

    ```python
    net = braid.from_jax(step, params, jnp.zeros((16, 20)))
    model = braid.compile(net)
    ```

    `args` are arrays, or `jax.ShapeDtypeStruct` for shapes and types alone, in trees as the
    function takes them; `jax.export.symbolic_shape` makes dims that stay open. Inputs of the model
    are the leaves of `args` in the order of `jax.tree.leaves`, also those that the function does
    not use, and its outputs are the leaves of what the function returns; a complex leaf is two, its
    real and its imaginary parts. It is exported for JAX's CPU, of whose calls of LAPACK braid knows
    some.

    Raises:
        BraidError: JAX is missing, or it cannot trace or export the function.

    """
    if not callable(function):
        raise BraidError(
            f"from_jax was given a {type(function).__name__}, expected a function",
            hint="give the function and example arguments, such as braid.from_jax(f, x)",
        )
    try:
        jax, export = import_module("jax"), import_module("jax.export")
    except ImportError as error:
        raise BraidError(f"from_jax needs jax: {error}", hint=install_command("jax")) from error

    def traced(*given: Any) -> Any:
        """Call a function that may be jitted already, and would omit unused arguments."""
        return function(*given)

    jitted = jax.jit(traced, keep_unused=True)
    try:
        exported = export.export(jitted, platforms=["cpu"])(*args)
    except Exception as error:  # the function may raise any exception while it is traced
        first = next(iter(str(error).splitlines()), "")
        raise BraidError(
            f"JAX cannot export the function: {type(error).__name__}: {first}",
            hint="call jax.jit(function) with the same arguments for a longer message",
        ) from error
    return exported.mlir_module().encode()
