"""Running the ops of a block one after the other on a table of values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, cast

from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.interpreter.last_uses import last_uses
from braid.analysis.interpreter.memory import LiveBytes
from braid.analysis.structure.nesting import parent_block
from braid.dialects.braid.base import AnyTensor, fits
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError, UnsupportedError

Value: TypeAlias = Any
"""Tensors are numpy arrays of the logical shape, scalars numpy scalars; `index` is np.int64."""

Observer = Callable[[Operation, Sequence[Value], Sequence[Value]], None]
"""Called after every op with its operands and results; ops in regions come before their op."""

Handler = Callable[["Machine", Operation, Sequence[Value]], Sequence[Value]]
"""The results of an op for its operands."""

OPERAND_ERRORS = (IndexError, ValueError, ZeroDivisionError, OverflowError, MemoryError)
"""The exceptions of numpy for operands without a result, such as an index outside."""


@dataclass
class Machine:
    """The state of a run: handlers by op class, functions, parameters, and who watches.

    `handlers` are looked up by the class of an op and then by its base classes. A mapping is loaded
    only if the mappings before it have no handler for the op.
    """

    handlers: Sequence[Callable[[], Mapping[type[Operation], Handler]]]
    functions: Mapping[str, Block]
    parameters: Mapping[str, Array]
    observer: Observer | None = None
    memory: LiveBytes = field(default_factory=LiveBytes)
    indices: Mapping[int, Value] = field(default_factory=dict[int, Value])
    """The index of each loop around the block that runs, for `linalg.index`."""
    _passed: list[Value] = field(default_factory=list[Value])
    _values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    _deaths: dict[Block, dict[Operation, tuple[SSAValue, ...]]] = field(
        default_factory=dict[Block, dict[Operation, tuple[SSAValue, ...]]]
    )

    def call(self, name: str, arguments: Sequence[Value]) -> Sequence[Value]:
        """Return the results of the function; it may call itself.

        Raises BraidError if there is no such function with a body.
        """
        if (block := self.functions.get(name)) is None:
            raise BraidError(f"the module has no function '@{name}' with a body")
        caller, self._values = self._values, {}
        try:
            return self.run_block(block, arguments)
        finally:
            self._values = caller

    def run_block(self, block: Block, arguments: Sequence[Value]) -> Sequence[Value]:
        """Return the operands of the terminator; values defined outside of the block are
        visible.
        """
        if block not in self._deaths:
            self._deaths[block] = last_uses(block)
        deaths = self._deaths[block]
        for argument, value in zip(block.args, arguments, strict=True):
            self._values[argument] = value
            self.memory.share(value)
        self._release()
        for op in block.ops:
            if op is block.last_op:
                break
            self._run(op)
            for value in deaths.get(op, ()):
                self.memory.remove(self._values.pop(value))
        return self._leave(block)

    def run_kernel(
        self, block: Block, arguments: Sequence[Value], indices: Mapping[int, Value] | None = None
    ) -> Sequence[Value]:
        """Run a block, whose inner values have no buffers, as `run_block` in loops at `indices`."""
        outside, self.memory, self.indices = self.memory, LiveBytes(), indices or {}
        try:
            results = self.run_block(block, arguments)
        finally:
            self.memory = outside
        for value in results:
            self.memory.add(value)
        self._passed = list(results)
        return results

    def _leave(self, block: Block) -> Sequence[Value]:
        terminator = block.last_op
        assert terminator is not None, "verified blocks have a terminator"
        operands = [self._values[operand] for operand in terminator.operands]
        self._passed = operands
        for value in operands:
            self.memory.share(value)
        if self.observer is not None:
            self.observer(terminator, operands, ())
        for value in dict.fromkeys((*block.args, *terminator.operands)):
            if parent_block(value) is block and value in self._values:
                self.memory.remove(self._values.pop(value))
        return operands

    def _release(self) -> None:
        """Drop the values that a block passed on, after results or the next block have taken them
        over."""
        for value in self._passed:
            self.memory.remove(value)
        self._passed = []

    def _run(self, op: Operation) -> None:
        operands = [self._values[operand] for operand in op.operands]
        try:
            results = self.results_of(op, operands)
        except BraidError as error:
            if error.location is None:
                error.location = source_location(op)
            raise
        except OPERAND_ERRORS as error:
            raise BraidError(f"'{op.name}' op: {error}", location=source_location(op)) from error
        for result, value in zip(op.results, results, strict=True):
            _check_type(op, result, value)
            self._values[result] = value
            # Values that a region or a function returns are counted already, or are inputs.
            if op.regions or isinstance(op, CallOp | LaunchOp | AwaitOp):
                self.memory.share(value)
            elif op.operands:
                self.memory.add(value)
        self._release()
        if self.observer is not None:
            self.observer(op, operands, results)

    def results_of(self, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        """Return the results of `op` on operands other than its own."""
        return self._handler(op)(self, op, operands)

    def _handler(self, op: Operation) -> Handler:
        for load in self.handlers:
            handlers = load()
            for cls in type(op).__mro__:
                if cls in handlers:
                    return handlers[cls]
        self.unknown(op)

    def unknown(self, op: Operation) -> NoReturn:
        """Raise UnsupportedError: no handler computes `op`."""
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        raise UnsupportedError(
            f"'{name}' op cannot be interpreted",
            hint="the interpreter knows braid's ops, and those of arith, func, linalg, math, scf "
            "and tensor on values; interpret a module before it is lowered to other dialects",
        )


def _check_type(op: Operation, result: SSAValue[Any], value: Value) -> None:
    """Raise BraidError if `value` is not of the type of `result`: `evaluate` of `op` is
    wrong then.
    """
    if isinstance(result.type, TensorType):
        tensor_type = cast(AnyTensor, result.type)  # pyright: ignore[reportUnknownMemberType]
        dtype = to_numpy(tensor_type.element_type)
        assert fits(tensor_type.get_shape(), value.shape) and value.dtype == dtype, (
            f"'{op.name}' gave {value.dtype}{list(value.shape)} for {tensor_type}"
        )
