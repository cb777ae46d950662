"""A model's state: inputs that take the values of outputs in the next run (`braid.state`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from braid.dialects.braid.attribute_names import APPENDED, DIM_ORDER, STATE
from braid.dialects.braid.ports import output_names


@dataclass(frozen=True)
class StatePort:
    """An input of a function by its number, and the output whose value it takes.

    Dim i of both is dim `order[i]` of the model as it was read; an empty order leaves all in place.
    Where it is `appended` to, the output begins with the elements of the input.
    """

    input: int
    output: int
    order: tuple[int, ...] = ()
    appended: bool = False


def state_of(function: FuncOp) -> tuple[StatePort, ...]:
    """Return the state of a function. Raises ValueError where it names an output that is none."""
    names = output_names(function)
    found: list[StatePort] = []
    for index, own in enumerate(function.arg_attrs or ()):
        output = own.data.get(STATE)
        if isinstance(output, StringAttr):
            order = own.data.get(DIM_ORDER)
            dims = cast("DenseArrayBase[IntegerType] | None", order)
            found.append(
                StatePort(
                    index,
                    names.index(output.data),
                    () if dims is None else tuple(map(int, dims.get_values())),
                    APPENDED in own.data,
                )
            )
    return tuple(found)


def set_state(function: FuncOp, outputs: Mapping[int, str]) -> None:
    """Write the name of the output that each input of the state takes, by its number."""
    for index, name in outputs.items():
        _set(function, "arg_attrs", index, {STATE: StringAttr(name)})


def set_appended(function: FuncOp, port: StatePort, order: tuple[int, ...]) -> None:
    """Write that a state is appended to, and the order of its dims; none for an empty one."""
    entries: dict[str, Attribute] = {}
    if order:
        entries[DIM_ORDER] = DenseArrayBase.from_list(i64, list(order))
    _set(function, "res_attrs", port.output, entries)
    _set(function, "arg_attrs", port.input, {**entries, APPENDED: UnitAttr()})


def _set(function: FuncOp, side: str, index: int, entries: Mapping[str, Attribute]) -> None:
    types = function.function_type
    count = len(types.inputs if side == "arg_attrs" else types.outputs)
    held = cast("ArrayAttr[DictionaryAttr] | None", getattr(function, side))
    dictionaries = list(held or [DictionaryAttr({})] * count)
    dictionaries[index] = DictionaryAttr({**dictionaries[index].data, **entries})
    setattr(function, side, ArrayAttr(dictionaries))
