"""Sizes with a name in the IR: assumptions about symbols, and the extents of open dims.

An open dim is a `?` in the shape of a type. The sizes are in the encoding of the tensor type, as a
layout is: `tensor<?x768xf32, #braid.sizes<["batch * sequence"]>>`. A type that is copied therefore
keeps its sizes, and text that is parsed again has them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import SYMBOLS, VALUE_SIZES
from braid.dialects.braid.layout import DYNAMIC, InvalidLayout, Layout
from braid.support.likely_sizes import LIKELY_SEQUENCE, likely_size
from braid.support.sizes.assumptions import Assumed, Assumptions
from braid.support.sizes.expression import (
    Extent,
    Size,
    SizeError,
    Symbol,
    atom_alone,
    symbol,
    symbols_of,
)
from braid.support.sizes.reading import parse_size
from braid.support.sizes.text import print_size


@irdl_attr_definition
class SizesAttr(ParametrizedAttribute):
    """A list of sizes, as text: of the open dims of a type, or an attribute of an op.

    As the encoding of a tensor type it has one size for each `?`, from left to right. Verification
    fails for invalid sizes.

    ```mlir
    tensor<?x?x768xf32, #braid.sizes<["batch", "sequence"]>>
    ```
    """

    name = "braid.sizes"

    texts: ArrayAttr[StringAttr] = param_def()

    @staticmethod
    def of(sizes: Iterable[Extent]) -> "SizesAttr":
        """Return the attribute of these sizes."""
        return SizesAttr(ArrayAttr([StringAttr(print_size(size)) for size in sizes]))

    def get_values(self) -> tuple[Extent, ...]:
        """Return the sizes, as `DenseArrayBase.get_values` returns numbers."""
        return _parsed(self.texts)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Read `<["size", …]>` and bring each size into its canonical form."""
        with parser.in_angle_brackets():
            texts = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parser.parse_str_literal("size")
            )
        return [_canonical(texts, parser)]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<["size", …]>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.texts)

    def verify(self) -> None:
        """Fail for a text that is no size."""
        _verify_texts(self.texts)


def _canonical(texts: Sequence[str], parser: AttrParser) -> ArrayAttr[StringAttr]:
    """Return texts of sizes in their canonical form; a text that is no size is an error there."""
    try:
        return ArrayAttr([StringAttr(print_size(parse_size(text))) for text in texts])
    except SizeError as error:
        parser.raise_error(error.message)


def _verify_texts(texts: ArrayAttr[StringAttr]) -> None:
    """Raise VerifyException for a text that is no size."""
    try:
        _parsed(texts)
    except SizeError as error:
        raise VerifyException(error.message) from None


def extent_attribute(op: Operation, name: str) -> Extent | None:
    """Return a number or a size that an attribute holds, None where there is no attribute."""
    held = op.attributes.get(name)
    if isinstance(held, SizesAttr):
        (extent,) = held.get_values()
        return extent
    return _integer(held, 0) if _is_number(held) else None


def attribute_of(extent: Extent) -> "SizesAttr | IntegerAttr[IntegerType]":
    """Return the attribute that `extent_attribute` reads."""
    return IntegerAttr(extent, i64) if isinstance(extent, int) else SizesAttr.of([extent])


@lru_cache(maxsize=4096)
def _parsed(texts: ArrayAttr[StringAttr]) -> tuple[Extent, ...]:
    return tuple(parse_size(text.data) for text in texts)


@irdl_attr_definition
class SizedLayoutAttr(ParametrizedAttribute):
    """The layout of a tensor with open dims, and the sizes of these, as the encoding of its type.

    Verification fails for an unknown tag and for an invalid size.

    ```mlir
    tensor<?x64x56x56xf32, #braid.sized_layout<"aBcd16b", ["batch"]>>
    ```
    """

    name = "braid.sized_layout"

    tag: StringAttr = param_def()
    texts: ArrayAttr[StringAttr] = param_def()

    @staticmethod
    def of(layout: Layout, sizes: SizesAttr) -> "SizedLayoutAttr":
        """Return the attribute of a layout and sizes."""
        return SizedLayoutAttr(StringAttr(layout.tag), sizes.texts)

    @property
    def layout(self) -> Layout:
        """Return the parsed tag."""
        return Layout.named(self.tag.data)

    @property
    def sizes(self) -> SizesAttr:
        """Return the sizes of the open dims."""
        return SizesAttr(self.texts)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Read `<"tag", ["size", …]>`; replace an alias of a layout, and bring sizes into form."""
        with parser.in_angle_brackets():
            tag = parser.parse_str_literal("layout tag")
            parser.parse_punctuation(",")
            texts = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parser.parse_str_literal("size")
            )
        try:
            return [StringAttr(Layout.named(tag).tag), _canonical(texts, parser)]
        except InvalidLayout as error:
            parser.raise_error(str(error))

    def print_parameters(self, printer: Printer) -> None:
        """Print `<"tag", ["size", …]>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.tag)
            printer.print_string(", ")
            printer.print_attribute(self.texts)

    def verify(self) -> None:
        """Fail for an unknown tag, or a text that is no size."""
        _verify_texts(self.texts)
        try:
            Layout.named(self.tag.data)
        except InvalidLayout as error:
            raise VerifyException(str(error)) from None


@irdl_attr_definition
class SymbolAttr(ParametrizedAttribute):
    """An attribute holds the assumptions about a symbol: its range, its divisors, likely values.

    ```mlir
    #braid.symbol<{likely = array<i64: 1, 8>, max = 64 : i64, min = 1 : i64}>
    ```
    """

    name = "braid.symbol"

    entries: DictionaryAttr = param_def()

    @staticmethod
    def of(assumed: Assumed) -> "SymbolAttr":
        """Return the attribute with the assumptions that do not hold for every size."""
        entries: dict[str, Attribute] = {}
        if assumed.minimum:
            entries["min"] = IntegerAttr(assumed.minimum, i64)
        if assumed.maximum is not None:
            entries["max"] = IntegerAttr(assumed.maximum, i64)
        if assumed.multiple_of != 1:
            entries["multiple_of"] = IntegerAttr(assumed.multiple_of, i64)
        if assumed.likely:
            entries["likely"] = DenseArrayBase.from_list(i64, list(assumed.likely))
        return SymbolAttr(DictionaryAttr(entries))

    @property
    def assumed(self) -> Assumed:
        """Return the assumptions. Raises `SizeError` for a range without values."""
        entries = self.entries.data
        maximum, likely = entries.get("max"), entries.get("likely")
        return Assumed(
            minimum=_integer(entries.get("min"), 0),
            maximum=None if maximum is None else _integer(maximum, 0),
            multiple_of=_integer(entries.get("multiple_of"), 1),
            likely=likely.get_values() if isinstance(likely, DenseArrayBase) else (),
        )

    def verify(self) -> None:
        """Fail for unknown entries, and for empty ranges."""
        for name, value in self.entries.data.items():
            if name not in ("min", "max", "multiple_of", "likely"):
                raise VerifyException(
                    f"a symbol has no entry '{name}', expected min, max, multiple_of or likely"
                )
            is_list = name == "likely"
            if not (_is_list(value) if is_list else _is_number(value)):
                expected = "an array<i64>" if is_list else "an integer, such as 64 : i64"
                raise VerifyException(f"entry '{name}' of a symbol is {value}, expected {expected}")
        try:
            self.assumed  # noqa: B018 # evaluated for its exceptions
        except SizeError as error:
            raise VerifyException(error.message) from None


def _is_number(value: Attribute | None) -> bool:
    return isinstance(value, IntegerAttr) and cast("IntegerAttr[Any]", value).type == i64


def _is_list(value: Attribute) -> bool:
    return isinstance(value, DenseArrayBase) and cast("DenseArrayBase[Any]", value).elt_type == i64


def _integer(value: Attribute | None, default: int) -> int:
    return cast("IntegerAttr[IntegerType]", value).value.data if value is not None else default


def symbols_attribute(assumptions: Mapping[str, Assumed]) -> DictionaryAttr:
    """Return the `braid.symbols` of a function with these symbols."""
    return DictionaryAttr({name: SymbolAttr.of(own) for name, own in assumptions.items()})


def assumptions_of(function: Operation) -> Assumptions:
    """Return a function's assumptions about its symbols."""
    held = function.attributes.get(SYMBOLS)
    symbols: dict[str, Assumed] = {}
    if isinstance(held, DictionaryAttr):
        for name, own in held.data.items():
            if isinstance(own, SymbolAttr):
                symbols[name] = own.assumed
    return Assumptions.of(symbols)


# ---- Symbols of a module ----


def value_sizes(function: FuncOp) -> list[tuple[str, ...]]:
    """Return, for each argument, the symbols whose values its elements are; none for most.

    Raises VerifyException for a list that does not fit the argument.
    """
    if function.arg_attrs is None:
        return [()] * len(function.function_type.inputs)
    held = [own.data.get(VALUE_SIZES) for own in function.arg_attrs]
    types = function.function_type.inputs.data
    return [_sizes_of_elements(own, type) for own, type in zip(held, types, strict=True)]


def _sizes_of_elements(held: Attribute | None, type: Attribute) -> tuple[str, ...]:
    if held is None:
        return ()
    names = held.get_values() if isinstance(held, SizesAttr) else ()
    atoms = [atom_alone(name) if isinstance(name, Size) else None for name in names]
    symbols = tuple(atom.name for atom in atoms if isinstance(atom, Symbol))
    shape = type.get_shape() if isinstance(type, TensorType) else (DYNAMIC,)
    is_read = type in (TensorType(i32, shape), TensorType(i64, shape))
    if not is_read or math.prod(shape) != len(symbols) or len(symbols) < len(names):
        raise VerifyException(
            f"'{VALUE_SIZES}' is {held} on an argument of type {type}, expected a symbol for each "
            "element of a tensor of i32 or i64"
        )
    return symbols


def tensor_types(root: Operation) -> "Iterator[TensorType[Any]]":
    """Yield the types of all tensors inside of an op: results and arguments of blocks."""
    for op in root.walk():
        blocks = (block for region in op.regions for block in region.blocks)
        arguments = (argument for block in blocks for argument in block.args)
        for value in (*op.results, *arguments):
            type: Attribute = value.type
            if isinstance(type, TensorType):
                yield cast("TensorType[Any]", type)


def symbols_used(root: Operation) -> set[str]:
    """Return the names of all symbols in types and among elements of inputs inside of an op."""
    found = {sizes for type in tensor_types(root) if (sizes := sizes_of_type(type)) is not None}
    functions = (op for op in root.walk() if isinstance(op, FuncOp))
    told = {name for function in functions for names in value_sizes(function) for name in names}
    return told | symbols_of(*(extent for sizes in found for extent in sizes.get_values()))


def is_open(module: Operation) -> bool:
    """Return whether a function, or one in a module, has arguments with open dims, or inputs of
    sizes."""
    inside = (op for region in module.regions for block in region.blocks for op in block.ops)
    functions = [op for op in (module, *inside) if isinstance(op, FuncOp)]
    types = (type for function in functions for type in function.function_type.inputs)
    tensors = (cast("TensorType[Any]", type) for type in types if isinstance(type, TensorType))
    return any(sizes_of_type(type) is not None for type in tensors) or any(
        VALUE_SIZES in own.data for function in functions for own in function.arg_attrs or ()
    )


def has_open_dims(root: Operation) -> bool:
    """Return whether a tensor in an op has an open dim, whatever sizes its type gives."""
    return any(DYNAMIC in type.get_shape() for type in tensor_types(root))


def likely_sizes(root: Operation) -> dict[str, int]:
    """Return the value of each symbol inside of an op at which decisions are made.

    It is the first that `braid.symbols` says is likely. By default the first of two or more dims is
    a batch of 1, the last two of four dims are image sides of 224, and other dims are sequences of
    128, each clamped to its range; the first tensor with the symbol counts. The elements of an
    input that are sizes count as the dims of a shape.
    """
    functions = [op for op in root.walk() if isinstance(op, FuncOp)]
    assumed = {name: own for f in functions for name, own in assumptions_of(f).symbols}
    guesses: dict[str, int] = {}
    for type in dict.fromkeys(tensor_types(root)):
        for dim, extent in enumerate(extents_of_type(type)):
            if isinstance(extent, Size):
                for name in sorted(symbols_of(extent) - guesses.keys()):
                    is_alone = extent == symbol(name)
                    guesses[name] = (
                        likely_size(dim, type.get_num_dims()) if is_alone else LIKELY_SEQUENCE
                    )
    for names in (names for f in functions for names in value_sizes(f)):
        for dim, name in enumerate(names):  # as if they were a shape
            guesses.setdefault(name, likely_size(dim, len(names)))
    return {name: _first_likely(assumed.get(name, Assumed()), guesses[name]) for name in guesses}


def _first_likely(assumed: Assumed, guess: int) -> int:
    return assumed.likely[0] if assumed.likely else assumed.nearest(guess)


# ---- Extents of types ----


def extents_of_type(type: "TensorType[Any]") -> tuple[Extent, ...]:
    """Return the extents; DYNAMIC for an open dim without a size in its type."""
    shape = type.get_shape()
    if DYNAMIC not in shape:
        return shape
    encoding = type.encoding
    if not isinstance(encoding, SizesAttr | SizedLayoutAttr):
        return shape
    sizes = iter(_parsed(encoding.texts))
    return tuple(next(sizes, DYNAMIC) if extent == DYNAMIC else extent for extent in shape)


def sized_type(element_type: Attribute, extents: Sequence[Extent]) -> "TensorType[Any]":
    """Return the type of row-major tensors with these extents.

    The attribute is missing if an open dim has an unknown size (DYNAMIC).
    """
    shape = [extent if isinstance(extent, int) else DYNAMIC for extent in extents]
    sizes = [extent for extent in extents if isinstance(extent, Size)]
    is_sized = len(sizes) > 0 and len(sizes) == shape.count(DYNAMIC)
    return TensorType(element_type, shape, SizesAttr.of(sizes) if is_sized else NoneAttr())


def sizes_of_type(type: "TensorType[Any]") -> SizesAttr | None:
    """Return the sizes of a type's open dims, None if the type has none."""
    encoding = type.encoding
    if isinstance(encoding, SizedLayoutAttr):
        return encoding.sizes
    return encoding if isinstance(encoding, SizesAttr) else None


def verify_sizes(type: "TensorType[Any]") -> None:
    """Raise VerifyException unless a type with sizes has one for each open dim."""
    encoding = type.encoding
    if isinstance(encoding, SizesAttr | SizedLayoutAttr):
        count, wanted = len(encoding.texts), type.get_shape().count(DYNAMIC)
        if count != wanted:
            raise VerifyException(f"type {type} has {count} sizes for {wanted} open dims")
