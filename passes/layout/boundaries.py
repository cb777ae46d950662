"""Find the sides of a boundary between devices on which a tensor may be stored anew."""

from collections.abc import Iterable, Iterator

from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.clusters import device_name


def sides(value: SSAValue, block: Block) -> tuple[str, ...]:
    """Return the devices that make `value` or read it in `block` or below, by name, readers first.

    It is None for an op without a device, such as control flow. If readers are on several devices,
    only the device that makes the value counts: a reorder on a third device would add transfers.
    """
    readers = [use.operation for use in value.uses if _is_in(use.operation, block)]
    # The first reader is the one next to which a reorder is placed.
    readers.sort(key=lambda op: op.parent is not block)
    reading = tuple(dict.fromkeys(_devices(readers)))
    making = tuple(_devices([value.owner]))
    return making if making and len(reading) > 1 else tuple(dict.fromkeys(reading + making))


def _devices(ops: Iterable[Operation | Block]) -> Iterator[str]:
    for op in ops:
        if isinstance(op, Operation) and (name := device_name(op)) is not None:
            yield name


def _is_in(op: Operation, block: Block) -> bool:
    around = op.parent
    while around is not None and around is not block:
        parent = around.parent_op()
        around = parent.parent if parent is not None else None
    return around is block
