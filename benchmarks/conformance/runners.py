"""Ways to run a module of StableHLO, TOSA or linalg: braid, and the compilers of its peers.

A runner gets the text of a module whose `@main` takes nothing, and returns its results in order.
"""

# pyright: basic

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import braid

_OF_STABLEHLO = "stablehlo"


@dataclass(frozen=True)
class Runner:
    """A way to run a module; `needs` is the module of Python that it is made of."""

    run: Callable[[str], list[Any]]
    needs: str = "braid"
    only: str = ""
    """The text that is in the path of each suite that it takes."""

    @property
    def is_peer(self) -> bool:
        """Return whether it is not braid: its errors are of no kind that is known."""
        return self.needs != "braid"

    def takes(self, place: str) -> bool:
        """Return whether it runs the suite at this place of a repository."""
        return self.only in place


def missing_runner(name: str) -> str | None:
    """Return the module that a runner needs and that is not installed, None if it is."""
    needed = RUNNERS[name].needs
    try:
        return None if importlib.util.find_spec(needed) else needed
    except ModuleNotFoundError:
        return needed


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _compiled(text: str) -> list[Any]:
    return _listed(braid.compile(text.encode())())


def _interpreted(text: str) -> list[Any]:
    return _listed(braid.interpret(text.encode())())


def _by_xla(text: str) -> list[Any]:
    """Compile as JAX does, on its CPU; constants of `arith` are no op of XLA's input."""
    import jax
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    backend = jax.devices("cpu")[0].client
    text = text.replace("arith.constant", "stablehlo.constant")
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        loaded = backend.compile_and_load(module, devices, xla_client.CompileOptions())
        return [
            np.asarray(each[0])
            for each in loaded.execute_sharded([]).disassemble_into_single_device_arrays()
        ]


def _by_iree(text: str) -> list[Any]:
    from iree.compiler import tools
    from iree.runtime import Config, VmModule, load_vm_module

    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    flags.append("--iree-llvmcpu-target-cpu=host")
    code = tools.compile_str(text, input_type="auto", extra_args=flags)
    config: Any = Config("local-sync")
    loaded: Any = VmModule.copy_buffer(config.vm_instance, code)
    return [value.to_host() for value in _listed(load_vm_module(loaded, config)["main"]())]


RUNNERS = {
    "compile": Runner(_compiled),
    "interpret": Runner(_interpreted),
    "iree": Runner(_by_iree, "iree.compiler"),
    "xla": Runner(_by_xla, "jaxlib", _OF_STABLEHLO),
}
"""The runners by the name that the command line gives them."""
