"""Upstream ops, which only the host's backend compiles, and the remark on them."""

from collections import Counter
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.upstream_ops import upstream_computes
from braid.dialects.braid.attribute_names import DEVICE
from braid.support.errors import BraidError
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class HostOps:
    """The ops of a function that only upstream's lowering compiles, and their device."""

    device: str
    ops: tuple[Operation, ...]

    @staticmethod
    def of(function: FuncOp, target: Target) -> "HostOps":
        """Return the upstream ops of `function`, those in groups included."""
        default = target.default_device
        on_host = default.own_memory or default.executes_streams
        return HostOps(target.host if on_host else default.name, tuple(upstream_computes(function)))

    def are_beside(self, target: Target) -> bool:
        """Return whether there are such ops on the host of a target with other devices."""
        return bool(self.ops) and self.device == target.host and len(target.devices) > 1

    @property
    def why(self) -> str:
        """Return why the ops run on the host, with their names and counts."""
        counts = Counter(map(op_name, self.ops))
        names = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        return f"braid has no ops for them: {names}"


def report_host_ops(function: FuncOp, target: Target, pass_name: str) -> None:
    """Emit a remark on upstream ops that run on the host of a target with other devices.

    Raises:
        BraidError: an upstream op names another device; only braid's ops can be placed on devices.

    """
    host = HostOps.of(function, target)
    for op in host.ops:
        device = op.attributes.get(DEVICE)
        if isinstance(device, StringAttr) and device.data != host.device:
            raise BraidError(
                f"'{op_name(op)}' has {DEVICE} = \"{device.data}\", but runs on '{host.device}': "
                "braid has no op for it, and only braid's ops are placed on devices",
                location=source_location(op),
                hint=f"remove {DEVICE}, or rewrite it as other ops",
            )
    if host.are_beside(target):
        emit_remark(
            host.ops[0],
            pass_name,
            f"{len(host.ops)} ops run on the host, '{host.device}', since {host.why}",
            device=host.device,
            ops=len(host.ops),
        )
