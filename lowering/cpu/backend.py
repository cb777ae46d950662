"""The backend of CPUs: kernels by families or upstream's passes, as objects by LLVM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.func import CallOp, FuncOp

from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.sizes import is_open, likely_sizes
from braid.lowering.common.upstream_ops import jobs_for
from braid.lowering.cpu.fallback.emit_fallback import VERSION, emit_fallback
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.kernels.contraction.arithmetic import BytePairArithmetic, HalfArithmetic
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.host.built_kernels import BuiltKernels, Fallback
from braid.lowering.host.codegen.compiler import compile_anonymous, generator_key
from braid.passes.outlining.outline_kernels import outlined_group
from braid.support.errors import UnsupportedError
from braid.support.object_cache import default_cache
from braid.support.settings import Precision
from braid.targets.backend import Backend, Job, Preparation
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.target import Device


def _product_types(precision: Precision) -> tuple[str, ...]:
    return f"select-product-types{{precision={precision}}}", "apply-product-types"


def _likely_sizes(kernels: Sequence[FuncOp]) -> dict[str, Mapping[str, int]]:
    """Return the sizes at which each kernel was decided, by its name: those of the first function
    that calls it, or of the module if no caller has any.
    """
    module = kernels[0].parent_op() if kernels else None
    if module is None or not is_open(module):
        return {}
    found: dict[str, Mapping[str, int]] = {}
    for function in (op for op in module.walk() if isinstance(op, FuncOp)):
        if SYMBOLS in function.attributes:
            sizes = likely_sizes(function)
            calls = (op for op in function.walk() if isinstance(op, CallOp))
            found = {**{call.callee.string_value(): sizes for call in calls}, **found}
    of_module = likely_sizes(module)
    names = (kernel.sym_name.data for kernel in kernels)
    return {name: found.get(name, of_module) for name in names}


@dataclass(frozen=True)
class CpuBackend(Backend):
    """The backend whose kernels are functions on addresses that the host program calls; see
    `Backend`.
    """

    name: str
    stages: tuple[str, ...] = ("linalg",)
    supports_dynamic_shapes: bool = True

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """See `cpu_families`."""
        return cpu_families(device.machine, installed, is_strict=device.settings.is_strict)

    def prepare(self, job: Job) -> Preparation:
        """Return passes for kernels that have no edge cases and compute in f32; then equal ops are
        merged.

        Weights are analysed if int8 kernels ask for it, and bf16 products are not changed if the
        machine has an instruction for them. Raises UnsupportedError if kernels of a library are
        asked for and it has none.
        """
        machine, settings = job.device.machine, job.device.settings
        lanes, precision = VectorUnit.of(machine).lanes, settings.precision
        in_pairs = BytePairArithmetic.on(machine, lanes) is not None
        has_halves = HalfArithmetic.on(machine, lanes) is not None
        rounds = precision is Precision.BF16 or not settings.is_strict
        if precision is Precision.BF16 and not has_halves:
            raise UnsupportedError(
                f"{machine.name} has no instruction for products of bf16, expected avx512bf16, "
                "and avx512vl for vectors of less than 512 bits",
                hint="leave out the precision 'bf16', or compile for a CPU such as 'znver4'",
            )
        return Preparation(
            before_folding=("extend-half-floats",),
            before_fusion=(
                "simplify-products",
                "expand-padding",
                "select-convolution-groups",
                "apply-convolution-groups",
                *(_product_types(precision) if has_halves and rounds else ()),
                "simplify",
                *(("annotate-weights",) if in_pairs else ()),
            ),
        )

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> BuiltKernels:
        """Emit the kernels that are not in the cache."""
        machine, cache = job.device.machine, default_cache()
        jobs = jobs_for(map(outlined_group, kernels), job.jobs)
        return BuiltKernels(
            kernels,
            KernelChoice.on(job.device),
            Fallback(emit_fallback, VERSION),
            partial(compile_anonymous, machine=machine, jobs=jobs, cache=cache),
            machine=machine,
            cache=cache,
            generator=generator_key(machine),
            likely=_likely_sizes(kernels),
        )
