"""Building braid ops, with known values folded, and weights by key."""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count

import numpy as np
from xdsl.dialects.builtin import TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import from_numpy, is_stored_only, to_numpy
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.names import set_names
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import (
    as_array,
    evaluate_sizes,
    fixed_shape,
    is_integral,
    is_sized,
)
from braid.dialects.braid.sized_ops import SizeValuesOp
from braid.frontends.onnx.building.text_values import TextTable
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import Extent, Size, symbol, symbols_of


class ParameterStore(Mapping[str, Array]):
    """A lazy mapping from parameter keys to arrays.

    Nothing is read before it is requested, and only arrays that were passed in are kept, so a
    memory-mapped weight never takes additional memory.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[], Array]] = {}

    def add(self, key: str, source: Callable[[], Array]) -> str:
        """Add a parameter and return its key: `key`, with a number if that is taken."""
        unique, count = key, 1
        while unique in self._sources:
            count += 1
            unique = f"{key}#{count}"
        self._sources[unique] = source
        return unique

    def __getitem__(self, key: str) -> Array:
        return self._sources[key]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


FOLDED_ELEMENTS = 4096
"""Larger results are computed by the model instead of at import."""
CONSTANT_ELEMENTS = 1024
"""Larger known values become parameters instead of constants, unless all elements are equal."""
CONSTANT_FLOATS = 8
"""The same for floats and bytes: weights, scales and biases are operands of kernels, not parts."""

MOST_SIZE_ELEMENTS = 16
"""Elements of an input whose values may be sizes: shapes, lengths, counts."""


class Builder:
    """Appends ops to `block`.

    Ops whose operands are all known are evaluated, so that a model's computations on shapes never
    become ops. Constants and parameters stay out of the module until something uses them; they then
    stand in `prologue`, for the start of the function.
    """

    def __init__(self, block: Block, parameters: ParameterStore) -> None:
        self.block = block
        self.parameters = parameters
        self.prologue: list[Operation] = []
        self.new_ops: list[Operation] = []
        self.inputs: dict[SSAValue, str] = {}
        """The names of the model's inputs."""
        self.requested: set[str] = set()
        """Names of inputs that could hold the sizes which nodes need; see `size_inputs.py`."""
        self.size_inputs: dict[str, tuple[str, ...]] = {}
        """Inputs whose elements are treated as sizes, and the names of these."""
        self.useful: set[str] = set()
        """The names of those inputs in `size_inputs` whose sizes nodes need."""
        self.useless: set[str] = set()
        """Names of inputs whose elements told no size that a node needed."""
        self.never_negative: set[tuple[str, int]] = set()
        """Elements of inputs, by name and number, that are not negative in any valid run."""
        self.has_sizes = False
        """If set, inputs and data may decide sizes."""
        self.assumed: dict[str, Assumed] = {}
        """The assumptions on the sizes that data decide, by their names."""
        self.requires_branches = False
        """If set, a branch that cannot be imported is an error at once, not where it is taken."""
        self.has_leftovers = False
        """Set once a block was given up, so that ops may be left over that were never inserted."""
        self.texts = TextTable()
        self.size_names: set[str] = set()
        """Names of sizes that are taken."""
        self.random_argument: SSAValue | None = None
        """The argument that is the key of a run's random numbers, where some node needs it."""
        self._random_streams = 0
        self._outermost = block
        self._known: dict[SSAValue, Array] = {}
        self._sizes: dict[SSAValue, Array] = {}
        self._waiting: dict[SSAValue, Operation] = {}
        self._constants: dict[tuple[object, ...], SSAValue] = {}

    def known(self, value: SSAValue) -> Array | None:
        """Return the value if it is known at import.

        A tensor without elements always is.
        """
        shape = extents_of(value)
        if value not in self._known and 0 in shape and not _is_open(shape):
            self._known[value] = _empty(value)
        return self._known.get(value)

    def sizes_of(self, value: SSAValue) -> Array | None:
        """Return the value where it is known, or made of sizes: then an array of objects."""
        return self._sizes.get(value) if value in self._sizes else self.known(value)

    def sizes(self, array: Array, element_type: Attribute = i64) -> SSAValue:
        """Return numbers and sizes as a value of integers; see `size_values.as_array`."""
        if not is_sized(array):
            return self.constant(array.astype(to_numpy(element_type)))
        value = self._wait(SizeValuesOp.of(array.reshape(-1).tolist(), array.shape))
        self._sizes[value] = array
        if element_type != i64:
            value = self._wait(elementwise("cast", value, element_type=element_type))
            self._sizes[value] = array
        return value

    def treat_as_sizes(self, argument: SSAValue, names: Sequence[str]) -> None:
        """Treat the elements of an input as sizes of these names."""
        self.size_inputs[self.inputs[argument]] = tuple(names)
        self.treat_as(argument, as_array([symbol(name) for name in names], fixed_shape(argument)))

    def treat_as(self, value: SSAValue, sizes: Array) -> None:
        """Treat the elements of a value as these sizes."""
        self._sizes[value] = sizes
        self.size_names.update(symbols_of(*sizes.reshape(-1).tolist()))

    def free_size_name(self, wanted: str, number: int | None) -> str:
        """Return a name that no size has yet, for an element with a `number`."""
        base = wanted if number is None else f"{wanted}[{number}]"
        names = chain([base], (f"{base}_{n}" for n in count(2)))
        name = next(each for each in names if each not in self.size_names)
        self.size_names.add(name)
        return name

    @property
    def may_decide(self) -> bool:
        """Return whether data may decide sizes here; they may not in regions of control flow."""
        return self.has_sizes and self.block is self._outermost

    @property
    def is_nested(self) -> bool:
        """Return whether ops are appended inside of control flow."""
        return self.block is not self._outermost

    def random_key(self) -> tuple[SSAValue, int]:
        """Return the key of a run's random numbers, `tensor<1xui64>`, and a stream that is free.

        The key becomes the last argument, in i64.
        """
        if self.random_argument is None:
            arguments = len(self._outermost.args)
            self.random_argument = self._outermost.insert_arg(TensorType(i64, [1]), arguments)
        self._random_streams += 1
        key = elementwise("bitcast", self.random_argument, element_type=from_numpy(np.uint64))
        return self.emit(key), self._random_streams - 1

    def emit(self, op: TensorOp) -> SSAValue:
        """Append an op with one result, or compute it, and return the result."""
        return self.emit_all(op)[0]

    def emit_all(self, op: TensorOp) -> list[SSAValue]:
        """Append an op or compute it, and return its results."""
        shapes = [extents_of(result) for result in op.results]
        if all(0 in shape for shape in shapes) and not any(map(_is_open, shapes)):
            return self._instead_of(op, [_empty(result) for result in op.results])
        values = self._evaluated(op, shapes)
        return list(self.insert(op).results) if values is None else self._instead_of(op, values)

    def _evaluated(
        self, op: TensorOp, shapes: Sequence[Sequence[Extent]]
    ) -> Sequence[Array] | None:
        """Return the results where all operands are known and the results are not large."""
        operands = [self.sizes_of(value) for value in op.operands]
        known = [operand for operand in operands if operand is not None]
        if len(known) != len(operands) or any(map(_is_open, shapes)):
            return None
        if max(math.prod(fixed_shape(result)) for result in op.results) > FOLDED_ELEMENTS:
            return None
        if any(map(is_sized, known)):
            return self._evaluated_sizes(op, known)
        return op.evaluate(*known)

    def _evaluated_sizes(self, op: TensorOp, operands: Sequence[Array]) -> Sequence[Array] | None:
        """Return the results where they are integers; the model computes floats and bools too."""
        values = evaluate_sizes(op, operands)
        undecided = any(element_type_of(r) == i1 for r in op.results) and any(
            map(is_sized, values or ())
        )
        if values is None or (all(map(is_integral, values)) and not undecided):
            return values
        self._sizes.update(zip(op.results, values, strict=True))
        return None

    def _instead_of(self, op: TensorOp, values: Sequence[Array]) -> list[SSAValue]:
        """Return known values for the results of `op`, which no longer uses its operands."""
        types = [element_type_of(result) for result in op.results]
        op.erase()
        return [
            self.sizes(array, type) if is_sized(array) else self.constant(array)
            for array, type in zip(map(np.asarray, values), types, strict=True)
        ]

    def insert(self, op: Operation) -> Operation:
        """Append any op unchanged, after the constants that it uses."""
        for value in op.operands:
            self.use(value)
        self.block.add_op(op)
        self.new_ops.append(op)
        return op

    def insert_one(self, op: TensorOp) -> SSAValue:
        """Append an op that has one result, as `insert` does, and return the result."""
        return self.insert(op).results[0]

    def use(self, value: SSAValue) -> SSAValue:
        """Make sure that the op that defines `value` will be in the module."""
        op = self._waiting.pop(value, None)
        if op is not None:
            for operand in op.operands:
                self.use(operand)
            if self._is_decided(op):
                self._outermost.add_op(op)  # behind the decision, and before all users
            else:
                self.prologue.append(op)
        return value

    def _is_decided(self, op: Operation) -> bool:
        """Return whether an op gives sizes that data decide, which no op before these may use."""
        if isinstance(op, SizeValuesOp):
            return not symbols_of(*op.values.get_values()).isdisjoint(self.assumed)
        return any(
            isinstance(operand.owner, SizeValuesOp) and self._is_decided(operand.owner)
            for operand in op.operands
        )

    def constant(self, array: Array) -> SSAValue:
        """Return a known value."""
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._constants:
            is_splat = array.size > 0 and bool((array == array.reshape(-1)[0]).all())
            if is_stored_only(from_numpy(array.dtype)):
                value = self._bits_of(array)
            elif array.size > _most_elements(array) and not is_splat:
                value = self.parameter(f"constant/{len(self._constants)}", array)
            else:
                value = self._wait(ConstantOp.of(array))
            self._constants[key] = value
            self._known[value] = array
        return self._constants[key]

    def _bits_of(self, array: Array) -> SSAValue:
        """Return a known value of a type that has no constants, as a bitcast of one of bytes."""
        bytes_ = self.constant(array.view(np.uint8))
        return self._wait(elementwise("bitcast", bytes_, element_type=from_numpy(array.dtype)))

    def as_text(self, value: SSAValue) -> SSAValue:
        """Return a value whose elements represent texts; unknown numbers may equal a known one."""
        known = self._known.get(value)
        if known is not None:
            value = self._wait(ConstantOp.of(known))
            self._known[value] = known
        self.texts.mark(value)
        return value

    def parameter(self, key: str, array: Array) -> SSAValue:
        """Return a weight whose array costs nothing to hold (a view of a file, or there anyway)."""
        key = self.parameters.add(key, lambda: array)
        op = ParameterOp.of(key, TensorType(from_numpy(array.dtype), array.shape))
        set_names(op, [key])
        return self._wait(op)

    def _wait(self, op: ConstantOp | ParameterOp | SizeValuesOp | ElementwiseOp) -> SSAValue:
        self._waiting[op.output] = op
        return op.output

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to another block for a while; an exception empties the block again."""
        outer, self.block = self.block, block
        before = len(self.new_ops)
        try:
            yield
        except Exception:
            self.has_leftovers = True
            del self.new_ops[before:]
            for op in reversed(list(block.ops)):
                block.erase_op(op, safe_erase=False)
            raise
        finally:
            self.block = outer

    def discard(self, block: Block) -> None:
        """Erase the ops that were appended to a block that is not used after all."""
        erased = set(block.walk())
        self.new_ops[:] = [op for op in self.new_ops if op not in erased]
        for op in reversed(list(block.ops)):
            block.erase_op(op, safe_erase=False)

    def give_up(self, before: int) -> None:
        """Erase the ops that were appended to the block since there were `before` new ones."""
        ops = [op for op in self.new_ops[before:] if op.parent is self.block]
        del self.new_ops[before:]
        self.has_leftovers = True
        for op in reversed(ops):  # nested ops are removed with it
            self.block.erase_op(op, safe_erase=False)

    @contextmanager
    def requiring_branches(self) -> Generator[None]:
        """Let a branch that cannot be imported be an error at once."""
        outer, self.requires_branches = self.requires_branches, True
        try:
            yield
        finally:
            self.requires_branches = outer


def _most_elements(array: Array) -> int:
    is_integer = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
    return CONSTANT_ELEMENTS if is_integer and array.dtype.itemsize > 1 else CONSTANT_FLOATS


def _is_open(shape: Sequence[Extent]) -> bool:
    return any(isinstance(extent, Size) for extent in shape)


def _empty(value: SSAValue) -> Array:
    return np.zeros(fixed_shape(value), to_numpy(element_type_of(value)))
