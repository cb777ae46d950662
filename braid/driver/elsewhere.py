"""Models whose code is for another machine than this one: described, saved, never run here."""

from collections.abc import Sequence

import numpy as np

from braid.dialects.braid.dtypes import to_numpy
from braid.lowering.host.descriptor import ModelDescription, ModelPort
from braid.runtime.manifest import DimSpec, TensorSpec
from braid.runtime.native import cpu_supports
from braid.targets.machines.cpus import NATIVE, cpu_machine, needed_features
from braid.targets.machines.machine import Machine


def missing_here(machine: Machine) -> str | None:
    """Why code for `machine` cannot run in this process, None where it can."""
    here = cpu_machine(NATIVE).architecture
    if machine.architecture != here:
        return f"its code is for {machine.architecture}, this machine is {here}"
    missing = next((name for name in needed_features(machine) if not cpu_supports(name)), None)
    return None if missing is None else f"its code needs '{missing}', which this CPU has not"


def described_dims(description: ModelDescription) -> tuple[DimSpec, ...]:
    """The dims of a model as its manifest has them."""
    return tuple(
        DimSpec(
            dim.name,
            tuple(sorted({variant.sizes[number] for variant in description.variants})),
            dim.padded_from,
        )
        for number, dim in enumerate(description.dims)
    )


def described_specs(ports: Sequence[ModelPort], dims: Sequence[DimSpec]) -> tuple[TensorSpec, ...]:
    """Inputs or outputs of a model as its manifest has them."""
    found: list[TensorSpec] = []
    for port in ports:
        names = tuple("" if number < 0 else dims[number].name for number in port.dims)
        dtype = np.dtype(to_numpy(port.element_type)).name
        shape, bound = tuple(port.shape), tuple(port.bound)
        found.append(TensorSpec(port.name, dtype, shape, bound, names if any(names) else ()))
    return tuple(found)
