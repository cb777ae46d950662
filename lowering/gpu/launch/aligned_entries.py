"""Entries for buffers that begin at multiples of 16 bytes, and their twins for those that do not.

An emitter asks `is_aligned` where it has code for both, as if it were seen at run time. Once a
kernel is complete each such entry becomes two, of which a launch chooses one by the addresses it
gets: the usual one has no instruction, and no register, for buffers that begin anywhere.
"""

from collections.abc import Sequence
from dataclasses import replace

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from braid.lowering.gpu.launch.launches import Launches

_QUESTION = "braid.is_aligned"


def is_aligned(builder: Builder) -> SSAValue:
    """Return whether every buffer of the entry begins at a multiple of 16 bytes."""
    answer = arith.ConstantOp(BoolAttr.from_bool(True))
    answer.attributes[_QUESTION] = UnitAttr()
    return builder.insert(answer).result


def with_twins(module: ModuleOp, launches: Launches) -> Launches:
    """Add to `module` the twins of the entries that ask, and to the launches their names."""
    entries = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    twins: dict[str, str] = {}
    for name, entry in entries.items():
        if not _questions(entry):
            continue
        twin = entry.clone()
        twins[name] = f"{name}_unaligned"
        twin.attributes["sym_name"] = StringAttr(twins[name])
        for question in _questions(twin):
            question.properties["value"] = BoolAttr.from_bool(False)
            del question.attributes[_QUESTION]
        for question in _questions(entry):
            del question.attributes[_QUESTION]
        parent = entry.parent_block()
        assert parent is not None
        parent.insert_ops_after([twin], entry)
    launched = tuple(
        replace(one, unaligned_entry=twins.get(one.entry)) for one in launches.launches
    )
    return replace(launches, launches=launched)


def _questions(entry: Operation) -> Sequence[Operation]:
    return [op for op in entry.walk() if _QUESTION in op.attributes]
