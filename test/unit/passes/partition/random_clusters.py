"""Random splits of a module over devices: ids that are valid, and not only runs of ops."""

from random import Random

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.structure.clusters import is_placed, order_of_units, units_of
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.clusters import Placement, clear_placement, set_placement


def split_at_random(module: ModuleOp, devices: list[str], random: Random) -> int:
    """Put every computed op into some cluster; return the number of clusters."""
    count = 0
    for function in module.ops:
        if not isinstance(function, FuncOp) or PREPARED_KEYS in function.attributes:
            continue
        for block in list(blocks_outside_groups(function)):
            clusters: list[Placement] = []
            for op in block.ops:
                if not is_placed(op):
                    continue
                known = random.sample(clusters, min(2, len(clusters)))
                new = Placement(count, random.choice(devices))
                for placement in known if random.random() < 0.7 else []:
                    set_placement(op, placement)
                    if order_of_units(block, units_of(block)) is not None:
                        break
                    clear_placement(op)
                else:
                    set_placement(op, new)
                    clusters.append(new)
                    count += 1
    return count
