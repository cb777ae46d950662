"""Ops that no backend but the host's has code for, and what is said of them."""

from collections import Counter

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.upstream_ops import upstream_computes
from braid.dialects.braid.attribute_names import DEVICE
from braid.support.errors import BraidError
from braid.targets.machines.target import Target


def report_host_ops(function: FuncOp, target: Target, pass_name: str) -> None:
    """Remark which ops of upstream's dialects run on the host though the target has other devices.

    Only braid's ops are placed on devices. Raises BraidError for one that says another device.
    """
    ops = list(upstream_computes(function))
    default = target.default_device
    runner = target.host if default.own_memory or default.executes_streams else default.name
    for op in ops:
        device = op.attributes.get(DEVICE)
        if isinstance(device, StringAttr) and device.data != runner:
            raise BraidError(
                f"'{op_name(op)}' has {DEVICE} = \"{device.data}\", but runs on '{runner}': braid "
                "has no op for it, and only those of braid are placed on devices",
                location=source_location(op),
                hint=f"leave out {DEVICE}, or write it as other ops",
            )
    if ops and runner == target.host and len(target.devices) > 1:
        counts = Counter(map(op_name, ops))
        names = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        emit_remark(
            ops[0],
            pass_name,
            f"{len(ops)} ops run on the host, '{runner}', since braid has none for them: {names}",
            device=runner,
            ops=len(ops),
        )
