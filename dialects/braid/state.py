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
from braid.dialects.braid.ports import input_names, output_names
from braid.support.errors import BraidError


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


def declared_state(function: FuncOp) -> dict[str, str]:
    """Return the names of outputs by those of the inputs that take their values, unchecked."""
    held = [own.data.get(STATE) for own in function.arg_attrs or ()]
    pairs = zip(input_names(function), held, strict=False)
    return {name: own.data for name, own in pairs if isinstance(own, StringAttr)}


def state_of(function: FuncOp) -> tuple[StatePort, ...]:
    """Return the state of a function. Raises BraidError if it names an output that does not
    exist."""
    names = output_names(function)
    for input, output in declared_state(function).items():
        if output not in names:
            raise BraidError(
                f"input '{input}' takes the value of '{output}', which is no output",
                hint=f"the outputs are {', '.join(names)}",
            )
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
