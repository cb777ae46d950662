"""Convert the ops of another dialect: each by a function, which is found by the op's name."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.base import AnyTensor, element_type_of, extents_of, fits
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.names import inherit_names
from braid.dialects.foreign import ForeignOp
from braid.passes.conversion.node import ForeignNode
from braid.passes.conversion.refused import Refused, missing_foreign_op
from braid.passes.sizes.infer_sizes import infer_nested
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import SizeError

NodeT = TypeVar("NodeT", bound=ForeignNode[Any])
Converter = Callable[[NodeT], SSAValue | Sequence[SSAValue]]
"""Converts an op to what its results become."""

INVALID_OP_ERRORS = (IndexError, OverflowError, ValueError, ZeroDivisionError)
"""Raised for attribute lists of wrong length, dims out of range and integers too large."""


class Converters(Generic[NodeT]):
    """The converters of a dialect, whose ops they see as nodes of their own kind.

    The `modules` of `package` have the functions, and register them when they are imported.
    """

    def __init__(self, node: Callable[[Any], NodeT], package: str, modules: Sequence[str]) -> None:
        self._node = node
        self._modules = [f"{package}.{module}" for module in modules]
        self._converters: dict[str, Converter[NodeT]] = {}

    def register(self, *names: str) -> Callable[[Converter[NodeT]], Converter[NodeT]]:
        """Return a decorator for the function that converts the ops of these names, without the
        dialect's name.
        """

        def register(function: Converter[NodeT]) -> Converter[NodeT]:
            self._converters.update(dict.fromkeys(names, function))
            return function

        return register

    def names(self) -> list[str]:
        """Return the names of the ops that have converters, without that of their dialect."""
        self._load()
        return list(self._converters)

    def _load(self) -> None:
        for module in self._modules:
            import_module(module)

    def convert(self, ops: Iterable[ForeignOp]) -> None:
        """Replace `ops`, each of which comes before the ops in its regions.

        A region is moved with its ops, which are converted later, or was erased with its op.
        Raises UnsupportedNodesError for ops that have no counterpart, and BraidError for one that
        is not valid, with the place of the op.
        """
        self._load()
        open_loops: list[Operation] = []
        refused = Refused()
        for op in ops:
            if not _is_gone(op):
                while open_loops and not open_loops[-1].is_ancestor(op):
                    infer_nested(open_loops.pop())
                with refused.noting(op):
                    values = self.replace(self._node(op))
                    owners = dict.fromkeys(value.owner for value in values)
                    open_loops += [o for o in owners if isinstance(o, scf.IfOp | scf.WhileOp)]
        refused.require_none()
        for op in reversed(open_loops):
            infer_nested(op)

    def replace(self, node: NodeT) -> Sequence[SSAValue]:
        """Put what an op becomes in its place; return the values of its results.

        Raises what `convert` raises, for this op alone.
        """
        values = self._values(node)
        for result, value in zip(node.op.results, values, strict=True):
            if value.name_hint is None:
                value.name_hint = result.name_hint
        inherit_names(node.op, values, node.inserted)
        Rewriter.replace_op(node.op, [], values)
        return values

    def _values(self, node: NodeT) -> Sequence[SSAValue]:
        convert = self._converters.get(node.op.short_name())
        if convert is None:
            raise missing_foreign_op(node.op, self.names())
        _require_tensors(node)
        try:
            converted = convert(node)
            values = [converted] if isinstance(converted, SSAValue) else converted
            if len(node.op.results) != len(values):
                node.fail(f"expected {len(values)} results, got {len(node.op.results)}")
            return [_as_declared(node, index, value) for index, value in enumerate(values)]
        except VerifyException as error:
            node.fail(str(error))
        except SizeError as error:
            node.fail(error.message)
        except INVALID_OP_ERRORS as error:
            node.fail(f"its fields, regions and types do not fit together: {error}")


def _as_declared(node: ForeignNode[Any], index: int, value: SSAValue) -> SSAValue:
    """Return a value with the extents that result `index` declares; other dims are unchanged.

    Raises BraidError where it cannot have the declared type.
    """
    declared = node.op.results[index].type
    if value.type == declared:
        return value
    actual: Attribute = value.type
    is_possible = isinstance(actual, TensorType) and isinstance(declared, TensorType)
    shape = cast(AnyTensor, declared).get_shape() if is_possible else ()
    own = extents_of(value) if is_possible else ()
    same_elements = is_possible and element_type_of(value) == cast(AnyTensor, declared).element_type
    if not same_elements or not fits(own, shape):
        node.fail(f"result {index} has type {declared}, expected {actual}")
    wanted = [n if n != DYNAMIC else e for n, e in zip(shape, own, strict=True)]
    return value if DYNAMIC in own else node.with_extents(value, wanted)


def _is_gone(op: Operation) -> bool:
    """Return whether `op` was replaced together with another op, or was in a region of one."""
    return not isinstance(op.get_toplevel_object(), ModuleOp)


def _require_tensors(node: ForeignNode[Any]) -> None:
    """Fail for values that braid does not compute with, except for operands that only describe
    others."""
    operands = enumerate(node.op.operand_types)
    types = [type for index, type in operands if index not in node.shape_operands]
    for type in (*types, *node.op.result_types):
        if not isinstance(type, TensorType):
            node.unsupported(
                f"a value has type {type}, expected a tensor of a known rank",
                hint="rewrite it with tensors whose ranks are known",
            )
        _require_element_type(node, cast(AnyTensor, type).element_type)


def _require_element_type(node: ForeignNode[Any], element_type: Attribute) -> None:
    try:
        to_numpy(element_type)
    except UnsupportedError as error:
        node.unsupported(
            error.message, hint="use floats, or integers of 8, 16, 32 or 64 bits, instead"
        )
