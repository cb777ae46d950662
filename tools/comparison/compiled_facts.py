"""What is known of a compiled model: its settings, its bytes and its kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from braid.driver.options import CompileOptions
from braid.runtime.artifact import Artifact
from braid.runtime.buffers import describe_shape
from braid.runtime.manifest import Manifest, TensorSpec
from braid.tools.comparison.decided_kernels import DecidedKernel, decided_kernels


@dataclass(frozen=True)
class CompiledFacts:
    """A model as it was compiled; `kernels` is None where only the artifact is known."""

    settings: Mapping[str, str]
    bytes: Mapping[str, int]
    kernels: Sequence[DecidedKernel] | None

    @staticmethod
    def of_artifact(artifact: Artifact) -> "CompiledFacts":
        """Return what an artifact says of itself. Raises BraidError where it is damaged."""
        return CompiledFacts(_settings(artifact.manifest), _bytes(artifact), None)

    @staticmethod
    def of_source(model: Path, options: CompileOptions, artifact: Artifact) -> "CompiledFacts":
        """Return what was decided about a model, and what came out. Raises BraidError as above."""
        kernels = decided_kernels(model, options)
        return CompiledFacts(_settings(artifact.manifest), _bytes(artifact), kernels)


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
