"""Gives the memory of a module back where nothing refers to it any more."""

from xdsl.dialects.builtin import ModuleOp


def discard(module: ModuleOp) -> None:
    """Take a module apart, which is of no use afterwards.

    Ops, values and their uses refer to each other in circles: without it they stay until Python
    searches for garbage, which takes longer than to take them apart.
    """
    for op in list(module.walk()):
        op.operands = ()
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    vars(argument).clear()
                vars(block).clear()
            vars(region).clear()
        vars(op).clear()
