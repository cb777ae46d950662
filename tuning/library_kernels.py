"""The kernels of vendors' libraries that searched ones are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.regions import FusedOp
from braid.lowering.host.codegen.compiler import compile_kernel
from braid.support.errors import BraidError
from braid.support.settings import Kernels
from braid.targets.backends import kernel_families
from braid.targets.kernels.group_matches import Match, match_group
from braid.targets.kernels.kernel_family import LIBRARIES
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.target import Device
from braid.tuning.layout_candidates import in_layouts
from braid.tuning.timing import TimingRequest, stored_arguments

LIBRARY_SCHEDULE = KernelSchedule.of("library", {})
"""The schedule of the fastest kernel of a library, whichever library it is."""


@dataclass(frozen=True, eq=False)
class LibraryKernel:
    """The library's kernel of `group`, whose tensors are in the layouts of `choice`."""

    match: Match
    group: FusedOp
    choice: LayoutChoice

    def request(self) -> TimingRequest | None:
        """Return what is timed; None where the kernel cannot be made."""
        try:
            kernel = self.match.emit("library", self.match.default_schedule())
            code = compile_kernel(kernel)
        except BraidError:
            return None
        return TimingRequest.of(kernel, code, stored_arguments(self.group, self.choice))


def library_kernels(op: FusedOp, choice: LayoutChoice, device: Device) -> list[LibraryKernel]:
    """Return the library's kernels for `op` with all tensors but weights in the layouts of
    `choice`.

    Weights are stored at compile time as a library would have them. None where no library is
    installed, or has such a kernel.
    """
    settings = replace(device.settings, kernels=Kernels.BEST)
    families = kernel_families(replace(device, settings=settings))
    expressions = ParameterExpressions()
    free = [expressions.is_known(operand) for operand in op.operands]
    kernels: list[LibraryKernel] = []
    for family in families:
        found = match_group(family, op) if family.name in LIBRARIES else None
        for offered in () if found is None else found.layouts:
            if _agree(offered, choice, free):
                group = in_layouts(op, offered)
                match = match_group(family, group)
                assert match is not None
                kernels.append(LibraryKernel(match, group, offered))
    return kernels


def _agree(one: LayoutChoice, other: LayoutChoice, free: Sequence[bool]) -> bool:
    pairs = zip(one.operands, other.operands, free, strict=True)
    return one.results == other.results and all(is_free or a == b for a, b, is_free in pairs)
