"""Write and read layout decisions: attributes between `select-layouts` and `apply-layouts`.

- `braid.layouts` on a compute op: `{operands = […], results = […]}`, one layout each; on a
  control-flow op `{carried = […]}`, one per value it carries, as `carried_values` numbers
  them.
- `braid.reorders` on the function: an array of `{value = …, source = …, target = …, block = …}`,
  with `device = …` where values are made or read on devices that are known.
  Values and blocks are numbers in the order of a walk over the function that leaves out what is
  inside groups: block arguments before the results in the block.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import LAYOUTS, REORDERS
from braid.dialects.braid.attributes import LayoutAttr
from braid.dialects.braid.layout import Layout
from braid.passes.layout.problem import Reorder
from braid.support.errors import BraidError

T = TypeVar("T")


def write_layouts(op: Operation, **layouts: Sequence[Layout]) -> None:
    """Write one list of layouts per keyword."""
    op.attributes[LAYOUTS] = DictionaryAttr(
        {key: _array(tuple(value)) for key, value in layouts.items()}
    )


@lru_cache(maxsize=4096)
def _array(layouts: tuple[Layout, ...]) -> ArrayAttr[LayoutAttr]:
    """Return an attribute, made once: the same few lists are on thousands of ops, and making them
    takes longest.
    """
    return ArrayAttr([_attribute(layout) for layout in layouts])


@lru_cache(maxsize=4096)
def _attribute(layout: Layout) -> LayoutAttr:
    return LayoutAttr.of(layout)


def read_layouts(op: Operation, key: str) -> list[Layout] | None:
    """Return the list under `key`, None if `op` carries no decision."""
    decision = op.attributes.get(LAYOUTS)
    if not isinstance(decision, DictionaryAttr):
        return None
    listed = decision.data.get(key)
    if not isinstance(listed, ArrayAttr):
        return None
    return [a.layout for a in cast(ArrayAttr[Attribute], listed) if isinstance(a, LayoutAttr)]


class Numbering:
    """Numbers of the blocks and values of a function."""

    def __init__(self, func: FuncOp) -> None:
        self.blocks = list(blocks_outside_groups(func))
        self.values: list[SSAValue] = []
        for block in self.blocks:
            self.values.extend(block.args)
            self.values.extend(result for op in block.ops for result in op.results)
        self._block_number = {block: index for index, block in enumerate(self.blocks)}
        self._value_number = {value: index for index, value in enumerate(self.values)}

    def number_of(self, item: Block | SSAValue) -> int:
        """Return the number of a block or value of the function."""
        return self._block_number[item] if isinstance(item, Block) else self._value_number[item]


def write_reorders(func: FuncOp, reorders: Iterable[Reorder]) -> None:
    """Write the reorders of a function, in the order in which they have to be made."""
    numbering = Numbering(func)
    entries: list[dict[str, Attribute]] = []
    for reorder in reorders:
        entry: dict[str, Attribute] = {
            "value": _integer(numbering.number_of(reorder.value)),
            "source": _attribute(reorder.source),
            "target": _attribute(reorder.target),
            "block": _integer(numbering.number_of(reorder.block)),
        }
        if reorder.device is not None:
            entry["device"] = StringAttr(reorder.device)
        entries.append(entry)
    func.attributes[REORDERS] = ArrayAttr([DictionaryAttr(entry) for entry in entries])


def read_reorders(func: FuncOp) -> list[Reorder]:
    """Return the reorders of a function; none if nothing is written.

    Raises BraidError for values or blocks that do not exist.
    """
    entries = cast(ArrayAttr[DictionaryAttr], func.attributes.get(REORDERS, ArrayAttr(())))
    numbering = Numbering(func)
    return [
        Reorder(
            _numbered(numbering.values, entry, "value", func),
            cast(LayoutAttr, entry.data["source"]).layout,
            cast(LayoutAttr, entry.data["target"]).layout,
            _numbered(numbering.blocks, entry, "block", func),
            device.data if isinstance(device := entry.data.get("device"), StringAttr) else None,
        )
        for entry in entries
    ]


def stale_reorder(func: FuncOp, what: str) -> BraidError:
    """Return the error about a decided reorder that does not fit the function."""
    return BraidError(
        f"'{REORDERS}' of '@{func.sym_name.data}' {what}",
        location=source_location(func),
        hint="run select-layouts again after changing the module",
    )


def _numbered(items: Sequence[T], entry: DictionaryAttr, key: str, func: FuncOp) -> T:
    number = _number(entry, key)
    if not 0 <= number < len(items):
        raise stale_reorder(func, f"names {key} {number}, but there are only {len(items)}")
    return items[number]


def _integer(value: int) -> Attribute:
    return IntegerAttr(value, i64)


def _number(entry: DictionaryAttr, key: str) -> int:
    return cast(IntegerAttr, entry.data[key]).value.data
