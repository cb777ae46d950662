"""A lowered model, and the package of code, weights and manifest that it becomes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from braid import __version__
from braid.analysis.interpreter import evaluate_prepare
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.variants import program_functions
from braid.driver.packaging.c_library import write_c_library
from braid.driver.packaging.weights import aligned_bytes, fill_weights
from braid.driver.read_source import chain_parameters
from braid.driver.sources.signature import boundary_of
from braid.driver.sources.source_model import Parameters, SourceModel
from braid.driver.sources.state import state_specs
from braid.lowering.host.codegen.link import link_shared_object
from braid.lowering.host.descriptor import ModelDescription, ModelPort
from braid.lowering.host.model_code import DeviceCode, ModelCode
from braid.runtime.artifact import Contents, fill_artifact
from braid.runtime.manifest import (
    DeviceCodeSpec,
    DeviceSpec,
    DimSpec,
    Manifest,
    RecordCount,
    ResourceSpec,
    SizeCheckSpec,
    TensorSpec,
    WeightSpec,
)
from braid.runtime.package import Package
from braid.support.memory_report import MemoryReport
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class LoweredModel:
    """A lowered model, its target and code, and the memory plan of each function.

    `kernels` counts those that have records.
    """

    model: SourceModel
    target: Target
    code: ModelCode
    memory: tuple[MemoryReport, ...]
    kernels: RecordCount


def all_parameters(model: SourceModel) -> Parameters:
    """Return the parameters of the model, and those that `@prepare` computes from them."""
    prepared = evaluate_prepare(model.module, model.parameters)
    return chain_parameters(prepared, model.parameters)


def package_of(lowered: LoweredModel) -> Package:
    """Return compiled code with its weights filled."""
    return _package(lowered, aligned_bytes(lowered.code.description.weights_bytes))


def write_lowered(lowered: LoweredModel, path: Path) -> Package:
    """Write compiled code and its weights, which are filled in place in the file.

    The weights of the result are those in the file, mapped to memory.

    Raises:
        BraidError: there is no C compiler to link it, or the file cannot be written.

    """
    packages: list[Package] = []
    # First, since weights may be large, and there may be nothing to link with.
    linked = link_shared_object(lowered.code.objects, libraries=lowered.code.libraries)

    def fill(weights: NDArray[np.uint8]) -> Contents:
        package = _package(lowered, weights)
        packages.append(package)
        return package.manifest, linked, package.devices

    fill_artifact(path, lowered.code.description.weights_bytes, fill)
    return packages[0]


def _package(lowered: LoweredModel, weights: NDArray[np.uint8]) -> Package:
    """Return compiled code, and its weights, which are stored in `weights`."""
    model, code = lowered.model, lowered.code
    index = fill_weights(weights, program_functions(model.module), all_parameters(model))
    manifest = _manifest(lowered, index)
    device_code = b"".join(part for own in code.devices for part in own.code.parts)
    link = partial(link_shared_object, libraries=code.libraries)
    return Package(manifest, code.objects, weights, link, write_c_library, device_code)


def _manifest(lowered: LoweredModel, index: tuple[WeightSpec, ...]) -> Manifest:
    description = lowered.code.description
    dims = _described_dims(description)
    return Manifest(
        model=lowered.model.name,
        inputs=_described_specs(description.inputs, dims),
        outputs=_described_specs(description.outputs, dims),
        arena_bytes=description.arena_bytes,
        target=lowered.target.name,
        triple=lowered.target.host_device.machine.triple,
        cpu_features=description.features,
        builder=f"braid {__version__}",
        weights=index,
        dims=dims,
        devices=tuple(_device_specs(lowered.code.devices)),
        runs_on=tuple(
            DeviceSpec(device.name, device.plugin) for device in lowered.code.description.devices
        ),
        libraries=lowered.code.libraries,
        inter_op_streams=description.inter_op_streams,
        memory=lowered.memory,
        kernels=lowered.kernels,
        output_shapes=description.output_sizes,
        expanded_bytes=description.expanded_bytes,
        boundary=boundary_of(lowered.model.module),
        phases=0 if description.phases is None else len(description.phases.phases),
        state=state_specs(lowered.model.module),
        size_checks=tuple(SizeCheckSpec(*own) for own in description.size_checks),
    )


def _device_specs(devices: Sequence[DeviceCode]) -> Iterator[DeviceCodeSpec]:
    offset = 0
    for own in devices:
        code, size = own.code, sum(map(len, own.code.parts))
        seconds = -1.0 if code.seconds is None else code.seconds * code.executions
        interval = -1.0 if code.interval is None else code.interval
        resources = tuple(
            ResourceSpec(name, float(used), float(available))
            for name, (used, available) in code.resources.items()
        )
        yield DeviceCodeSpec(
            own.device,
            code.kind,
            offset,
            size,
            seconds,
            interval=interval,
            resources=resources,
        )
        offset += size


def _described_dims(description: ModelDescription) -> tuple[DimSpec, ...]:
    """Return the dims of a model as its manifest has them."""
    return tuple(
        DimSpec(
            dim.name,
            tuple(sorted({variant.sizes[number] for variant in description.variants})),
            dim.padded_from,
        )
        for number, dim in enumerate(description.dims)
    )


def _described_specs(ports: Sequence[ModelPort], dims: Sequence[DimSpec]) -> tuple[TensorSpec, ...]:
    """Return inputs or outputs of a model as its manifest has them."""
    found: list[TensorSpec] = []
    for port in ports:
        names = tuple("" if number < 0 else dims[number].name for number in port.dims)
        dtype = np.dtype(to_numpy(port.element_type)).name
        shape, bound = tuple(port.shape), tuple(port.bound)
        told = tuple(port.values)
        dim_names = names if any(names) else ()
        found.append(TensorSpec(port.name, dtype, shape, bound, dim_names, told))
    return tuple(found)
