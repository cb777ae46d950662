"""Describe a model with open sizes to the runtime: which sizes to compute, place and check."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerType, StringAttr
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import OPEN_BUFFERS, OPEN_LIFETIMES, SIZE_CHECKS
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.sizes import SizesAttr, extents_of_type, is_open, value_sizes
from braid.lowering.host.open_sizes import SizeTable
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import Extent, Size, Symbol, atom_alone, symbols_of
from braid.support.sizes.program import Program, program_of


@dataclass(frozen=True)
class OpenBuffer:
    """A buffer of the arena: the index of its bytes among the sizes, and its lifetime."""

    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class SizeCheck:
    """A size, by number, that must be 0, or not negative; else a run fails with the message."""

    size: int
    is_zero: bool
    message: str


@dataclass(frozen=True)
class ValueSize:
    """An element of an input, both by number, whose value is the size `symbol`."""

    input: int
    element: int
    symbol: str


@dataclass(frozen=True)
class OpenModel:
    """The sizes of a model, and the known facts about them, by number.

    The program that is emitted adds what it reads to `sizes`. `input_shapes` has the numbers of
    input sizes that follow from the dims, -1 for other sizes; it is empty if no size does.
    """

    sizes: SizeTable
    buffers: tuple[OpenBuffer, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    checks: tuple[SizeCheck, ...]
    values: tuple[ValueSize, ...] = ()
    input_shapes: tuple[tuple[int, ...], ...] = ()

    def program(self) -> Program:
        """Return the program that computes all sizes."""
        return program_of(self.sizes.extents)


def open_model_of(function: FuncOp) -> OpenModel | None:
    """Return the facts about a function after `plan-memory`; None if no size is open.

    Raises BraidError without the list of checks of runs, and UnsupportedError for an input whose
    dim is an expression that does not follow from other dims.
    """
    if not is_open(function):
        return None
    table = SizeTable()
    types = function.function_type
    _refuse_untold(function)
    inputs = [
        [_following(extent, table) for extent in extents] for extents in _input_extents(function)
    ]
    held, lifetimes = function.attributes[OPEN_BUFFERS], function.attributes[OPEN_LIFETIMES]
    assert isinstance(held, SizesAttr) and isinstance(lifetimes, DenseArrayBase)
    bounds = cast("DenseArrayBase[IntegerType]", lifetimes).get_values()
    buffers = [
        OpenBuffer(table.number(extent), int(bounds[2 * n]), int(bounds[2 * n + 1]))
        for n, extent in enumerate(held.get_values())
    ]
    shapes = [extents_of_type(cast(AnyTensor, type)) for type in types.outputs]
    outputs = [tuple(table.number(extent) for extent in shape) for shape in shapes]
    values = tuple(
        ValueSize(number, element, name)
        for number, names in enumerate(value_sizes(function))
        for element, name in enumerate(names)
    )
    checks = tuple(_checks(function, table))
    follows = tuple(map(tuple, inputs)) if any(max(own, default=-1) >= 0 for own in inputs) else ()
    return OpenModel(table, tuple(buffers), tuple(outputs), checks, values, follows)


def open_dims(function: FuncOp, model: OpenModel) -> list[str]:
    """Return the names of a function's open dims, in the order in which the sizes' program reads.

    Those that no size needs come last.
    """
    extents = (extent for shape in _input_extents(function) for extent in shape)
    used = sorted(symbols_of(*extents))
    told = (value.symbol for value in model.values)
    return list(dict.fromkeys((*model.program().symbols, *used, *told)))


def _input_extents(function: FuncOp) -> list[tuple[Extent, ...]]:
    types = cast("Sequence[AnyTensor]", function.function_type.inputs.data)
    return [extents_of_type(type) for type in types]


def told_symbols(function: FuncOp) -> set[str]:
    """Return the symbols that are a dim of an input themselves, or an element of one."""
    extents = [extent for shape in _input_extents(function) for extent in shape]
    atoms = (atom_alone(extent) for extent in extents if isinstance(extent, Size))
    values = {name for names in value_sizes(function) for name in names}
    return values | {atom.name for atom in atoms if isinstance(atom, Symbol)}


def _following(extent: Extent, table: SizeTable) -> int:
    """Return the number of a size of an input that no dim is; -1 for others."""
    if isinstance(extent, int) or isinstance(atom_alone(extent), Symbol):
        return -1
    return table.number(extent)


def _refuse_untold(function: FuncOp) -> None:
    told = told_symbols(function)
    for extent in (extent for shape in _input_extents(function) for extent in shape):
        if not symbols_of(extent) <= told:
            raise UnsupportedError(
                f"an input has the size '{extent}', expected a symbol, such as 'batch'",
                location=source_location(function),
                hint="give the dim a name of its own",
            )


def _checks(function: FuncOp, table: SizeTable) -> Iterable[SizeCheck]:
    held = function.attributes.get(SIZE_CHECKS)
    if held is None:
        raise BraidError(
            "nothing says what each run has to check about the sizes of the function",
            location=source_location(function),
            hint="run collect-size-checks before passes that change ops",
        )
    for entry in cast("ArrayAttr[DictionaryAttr]", held) if isinstance(held, ArrayAttr) else ():
        size, message = entry.data["size"], entry.data["message"]
        assert isinstance(size, SizesAttr) and isinstance(message, StringAttr)
        (extent,) = size.get_values()
        yield SizeCheck(table.number(extent), "zero" in entry.data, message.data)
