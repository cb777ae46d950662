"""Export names to packages that add ops, importers, passes, kernel families or backends to braid.

These names keep their meaning within a major version; modules under `braid.dialects`,
`braid.lowering` and the like are braid's own and move. Names are loaded on first use, so that a
dialect does not import the code generators.

```python
from braid.extend import Structure, StructuredOp
```
"""

from typing import TYPE_CHECKING

from braid.support.lazy import lazy_names

if TYPE_CHECKING:
    from braid.analysis.diagnostics.locations import source_location
    from braid.analysis.diagnostics.remarks import emit_remark
    from braid.analysis.interpreter import interpret
    from braid.analysis.storage.layout_choice import LayoutChoice
    from braid.dialects.braid.attributes import layout_of
    from braid.dialects.braid.base import (
        AnyTensor,
        DecomposableOp,
        IndirectOp,
        StructuredOp,
        TensorOp,
        element_type_of,
        require,
        shape_of,
    )
    from braid.dialects.braid.boxes import Box
    from braid.dialects.braid.constants import ConstantOp
    from braid.dialects.braid.dtypes import is_float, numpy_from_dense
    from braid.dialects.braid.layout import DYNAMIC, Layout
    from braid.dialects.braid.names import names_of, union_names
    from braid.dialects.braid.normalization import pointwise_stage
    from braid.dialects.braid.reduction import ReduceOp, reduce_stage
    from braid.dialects.braid.regions import FusedOp
    from braid.dialects.braid.relayout import Array
    from braid.dialects.braid.scalar import Apply, Argument, Literal, Load, Position
    from braid.dialects.braid.structure import (
        Access,
        IteratorKind,
        OperandSource,
        Padding,
        Stage,
        StageSource,
        Structure,
    )
    from braid.dialects.braid.tiling import IterationDim, Reads, Tile
    from braid.frontends.onnx.building.builder import Builder
    from braid.frontends.onnx.building.expressions import (
        apply,
        cast,
        matmul,
        reduce,
        reshape,
        scalar,
        transpose,
    )
    from braid.frontends.onnx.building.node import Node
    from braid.frontends.onnx.building.registry import importer
    from braid.lowering.cpu.call import call_kernel
    from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
    from braid.lowering.cpu.unit.kernel_function import grid_kernel
    from braid.lowering.cpu.unit.vector_unit import VectorUnit
    from braid.lowering.emit.buffer import Buffer
    from braid.lowering.emit.emitter import Emitter, Index, Value
    from braid.lowering.emit.rows import each, fold
    from braid.passes.infrastructure.context import make_context
    from braid.passes.infrastructure.pipeline_parser import parse_pipeline
    from braid.support.errors import BraidError, Note, SourceLocation, UnsupportedError
    from braid.targets.backend import (
        OBJECT,
        Backend,
        BackendGroup,
        Code,
        EmittedKernels,
        Grouping,
        Job,
        KernelMeter,
        KernelNeeds,
        Measuring,
        Preparation,
        StandingGroup,
        Unmeasured,
    )
    from braid.targets.backends import backend, kernel_families
    from braid.targets.kernels.kernel_family import (
        Candidate,
        Extensible,
        Kernel,
        KernelFamily,
        Overlap,
    )
    from braid.targets.kernels.schedules import Schedule
    from braid.targets.machines.cpus import cpu_machine
    from braid.targets.machines.load import load_target
    from braid.targets.machines.machine import Machine
    from braid.targets.machines.resolve import device_of, runs_on, target_of
    from braid.targets.machines.target import Device, Target

_HOMES = {
    "braid.analysis.interpreter": ("interpret",),
    "braid.analysis.storage.layout_choice": ("LayoutChoice",),
    "braid.targets.kernels.kernel_family": (
        "Candidate",
        "Extensible",
        "Kernel",
        "KernelFamily",
        "Overlap",
    ),
    "braid.targets.kernels.schedules": ("Schedule",),
    "braid.analysis.diagnostics.locations": ("source_location",),
    "braid.analysis.diagnostics.remarks": ("emit_remark",),
    "braid.dialects.braid.base": (
        "AnyTensor",
        "DecomposableOp",
        "IndirectOp",
        "StructuredOp",
        "TensorOp",
        "element_type_of",
        "require",
        "shape_of",
    ),
    "braid.dialects.braid.boxes": ("Box",),
    "braid.dialects.braid.constants": ("ConstantOp",),
    "braid.dialects.braid.dtypes": ("is_float", "numpy_from_dense"),
    "braid.dialects.braid.layout": ("DYNAMIC", "Layout"),
    "braid.dialects.braid.names": ("names_of", "union_names"),
    "braid.dialects.braid.normalization": ("pointwise_stage",),
    "braid.dialects.braid.reduction": ("ReduceOp", "reduce_stage"),
    "braid.dialects.braid.regions": ("FusedOp",),
    "braid.dialects.braid.relayout": ("Array",),
    "braid.dialects.braid.scalar": ("Apply", "Argument", "Literal", "Load", "Position"),
    "braid.dialects.braid.structure": (
        "Access",
        "IteratorKind",
        "OperandSource",
        "Padding",
        "Stage",
        "StageSource",
        "Structure",
    ),
    "braid.dialects.braid.tiling": ("IterationDim", "Reads", "Tile"),
    "braid.support.errors": ("BraidError", "Note", "SourceLocation", "UnsupportedError"),
    "braid.frontends.onnx.building.builder": ("Builder",),
    "braid.frontends.onnx.building.expressions": (
        "apply",
        "cast",
        "matmul",
        "reduce",
        "reshape",
        "scalar",
        "transpose",
    ),
    "braid.frontends.onnx.building.node": ("Node",),
    "braid.frontends.onnx.building.registry": ("importer",),
    "braid.lowering.cpu.call": ("call_kernel",),
    "braid.lowering.emit.buffer": ("Buffer",),
    "braid.lowering.emit.emitter": ("Emitter", "Index", "Value"),
    "braid.lowering.cpu.unit.kernel_function": ("grid_kernel",),
    "braid.lowering.cpu.unit.vector_unit": ("VectorUnit",),
    "braid.lowering.emit.rows": ("each", "fold"),
    "braid.lowering.cpu.kernels.groups.traffic": ("stored_bytes",),
    "braid.targets.machines.cpus": ("cpu_machine",),
    "braid.targets.machines.machine": ("Machine",),
    "braid.passes.infrastructure.pipeline_parser": ("parse_pipeline",),
    "braid.targets.backend": (
        "OBJECT",
        "Backend",
        "BackendGroup",
        "Code",
        "EmittedKernels",
        "Grouping",
        "Job",
        "KernelMeter",
        "KernelNeeds",
        "Measuring",
        "Preparation",
        "StandingGroup",
        "Unmeasured",
    ),
    "braid.targets.backends": ("backend", "kernel_families"),
    "braid.targets.machines.load": ("load_target",),
    "braid.targets.machines.resolve": ("device_of", "runs_on", "target_of"),
    "braid.targets.machines.target": ("Device", "Target"),
    "braid.dialects.braid.attributes": ("layout_of",),
    "braid.passes.infrastructure.context": ("make_context",),
}
__getattr__ = lazy_names(
    __name__, {name: module for module, names in _HOMES.items() for name in names}
)

__all__ = [
    "DYNAMIC",
    "OBJECT",
    "Access",
    "AnyTensor",
    "Apply",
    "Argument",
    "Array",
    "Backend",
    "BackendGroup",
    "Box",
    "BraidError",
    "Buffer",
    "Builder",
    "Candidate",
    "Code",
    "ConstantOp",
    "DecomposableOp",
    "Device",
    "EmittedKernels",
    "Emitter",
    "Extensible",
    "FusedOp",
    "Grouping",
    "Index",
    "IndirectOp",
    "IterationDim",
    "IteratorKind",
    "Job",
    "Kernel",
    "KernelFamily",
    "KernelMeter",
    "KernelNeeds",
    "Layout",
    "LayoutChoice",
    "Literal",
    "Load",
    "Machine",
    "Measuring",
    "Node",
    "Note",
    "OperandSource",
    "Overlap",
    "Padding",
    "Position",
    "Preparation",
    "Reads",
    "ReduceOp",
    "Schedule",
    "SourceLocation",
    "Stage",
    "StageSource",
    "StandingGroup",
    "Structure",
    "StructuredOp",
    "Target",
    "TensorOp",
    "Tile",
    "Unmeasured",
    "UnsupportedError",
    "Value",
    "VectorUnit",
    "apply",
    "backend",
    "call_kernel",
    "cast",
    "cpu_machine",
    "device_of",
    "each",
    "element_type_of",
    "emit_remark",
    "fold",
    "grid_kernel",
    "importer",
    "interpret",
    "is_float",
    "kernel_families",
    "layout_of",
    "load_target",
    "make_context",
    "matmul",
    "names_of",
    "numpy_from_dense",
    "parse_pipeline",
    "pointwise_stage",
    "reduce",
    "reduce_stage",
    "require",
    "reshape",
    "runs_on",
    "scalar",
    "shape_of",
    "source_location",
    "stored_bytes",
    "target_of",
    "transpose",
    "union_names",
]


def __dir__() -> list[str]:
    return sorted(__all__)
