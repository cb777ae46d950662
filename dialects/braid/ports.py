"""Names of a model's inputs and outputs: `braid.name` on the arguments and results of `@main`."""

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from braid.dialects.braid.attribute_names import NAME


def input_names(function: func.FuncOp) -> tuple[str, ...]:
    """Names of the inputs in order; `input<i>` where one has none."""
    return _names(function.arg_attrs, len(function.function_type.inputs), "input")


def output_names(function: func.FuncOp) -> tuple[str, ...]:
    """Names of the outputs in order; `output<i>` where one has none."""
    return _names(function.res_attrs, len(function.function_type.outputs), "output")


def name_dictionaries(names: Iterable[str]) -> ArrayAttr[DictionaryAttr]:
    """The `arg_attrs` or `res_attrs` that hold these names."""
    return ArrayAttr(DictionaryAttr({NAME: StringAttr(name)}) for name in names)


def _names(
    dictionaries: ArrayAttr[DictionaryAttr] | None, count: int, kind: str
) -> tuple[str, ...]:
    names = [f"{kind}{index}" for index in range(count)]
    for index, dictionary in enumerate(dictionaries or ()):
        name = dictionary.data.get(NAME)
        if isinstance(name, StringAttr):
            names[index] = name.data
    return tuple(names)
