"""Collect the facts of a compiled model: its settings, its bytes and its kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from braid.driver.options import CompileOptions
from braid.runtime.artifact import Artifact, Bytes, digest
from braid.runtime.buffers import describe_shape
from braid.runtime.manifest import Manifest, TensorSpec
from braid.tools.comparison.decided_kernels import DecidedKernel, decided_kernels


@dataclass(frozen=True)
class CompiledFacts:
    """A model as it was compiled; `kernels` is None if only the artifact is known.

    `contents` are digests of what bytes count: code, and each weight by its name.
    """

    settings: Mapping[str, str]
    bytes: Mapping[str, int]
    contents: Mapping[str, str]
    kernels: Sequence[DecidedKernel] | None

    @staticmethod
    def of_artifact(artifact: Artifact) -> "CompiledFacts":
        """Return the facts that an artifact holds. Raises BraidError where it is damaged."""
        manifest = artifact.manifest
        return CompiledFacts(_settings(manifest), _bytes(artifact), _contents(artifact), None)

    @staticmethod
    def of_source(model: Path, options: CompileOptions, artifact: Artifact) -> "CompiledFacts":
        """Return the decisions about a model, and their results. Raises BraidError as above."""
        return replace(CompiledFacts.of_artifact(artifact), kernels=decided_kernels(model, options))


def _settings(manifest: Manifest) -> dict[str, str]:
    return {
        "target": manifest.target,
        "machine": manifest.triple,
        "CPU features": " ".join(manifest.cpu_features),
        "compiled by": manifest.builder,
        "inputs": _tensors(manifest.inputs),
        "outputs": _tensors(manifest.outputs),
        "runs on": " ".join(device.name for device in manifest.runs_on),
        "libraries": " ".join(manifest.libraries),
        "kernels side by side": str(manifest.inter_op_streams),
        "kernels with a record": f"{manifest.kernels.recorded} of {manifest.kernels.total}",
    }


def _tensors(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec.dtype}[{describe_shape(spec)}]" for spec in specs)


def _bytes(artifact: Artifact) -> dict[str, int]:
    """Return bytes by what takes them; the arena of a model with open dims is 0 (see Manifest)."""
    manifest = artifact.manifest
    return {
        "artifact": artifact.data.nbytes,
        "code": artifact.code.nbytes,
        "weights": sum(weight.nbytes for weight in manifest.weights),
        "weights made at load": manifest.expanded_bytes,
        "code of devices": sum(code.nbytes for code in manifest.devices if not code.in_code),
        "arena": manifest.arena_bytes,
        "arena and outputs at the peak": max(
            (report.activation_bytes for report in manifest.memory), default=0
        ),
    }


def _contents(artifact: Artifact) -> dict[str, str]:
    """Return digests; raises BraidError where the artifact is damaged."""
    section = artifact.weights_section
    found = {"code": _digest(artifact.code)}
    for spec, code in zip(artifact.manifest.devices, artifact.device_code, strict=True):
        found[f"{spec.kind} of {spec.device}"] = _digest(code)
    for weight in artifact.manifest.weights:
        values = section[weight.offset : weight.offset + weight.nbytes]
        found[f"weight '{weight.name}'"] = _digest(values)
    return found


def _digest(data: Bytes) -> str:
    return f"{digest(np.ascontiguousarray(data)):016x}"
