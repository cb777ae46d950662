"""Evaluation of expressions of parameters whose values are known at compile time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue

from braid.analysis.interpreter.machine import OPERAND_ERRORS
from braid.analysis.structure.model_context import parameters_in
from braid.analysis.structure.parameter_expressions import MOST_ELEMENTS, PREPARE, elements
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.size_limits import MOST_NUMBERS
from braid.support.errors import BraidError

Array = NDArray[Any]


def parameter_values(context: Context, module: ModuleOp) -> "ParameterValues":
    """Return an evaluator for the parameters of `context` and the results of `@prepare`."""
    return ParameterValues(parameters_in(context), _prepared(module))


def _prepared(module: ModuleOp) -> dict[str, SSAValue]:
    """Return the results of `@prepare`, by the key under which each is stored."""
    for function in module.ops:
        if not isinstance(function, FuncOp) or function.sym_name.data != PREPARE:
            continue
        last = function.body.block.last_op
        if PREPARED_KEYS in function.attributes and isinstance(last, ReturnOp):
            keys = cast("ArrayAttr[StringAttr]", function.attributes[PREPARED_KEYS])
            return dict(zip((key.data for key in keys), last.arguments, strict=True))
    return {}


@dataclass(frozen=True)
class ParameterValues:
    """An evaluator of expressions of parameters.

    It looks a parameter up in `parameters`, unless `prepared` has the value in `@prepare` that the
    parameter is made from, which is then evaluated in turn.
    """

    parameters: Mapping[str, Array]
    prepared: Mapping[str, SSAValue]
    _found: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, Array | None])

    def of(self, value: SSAValue) -> Array | None:
        """Return the value of an expression as an array.

        Return None where `value` depends on an input of the model, or a parameter has no value.
        """
        self._found.clear()  # weights are large, and rarely share subexpressions
        stack = [value]
        while stack:
            current = stack[-1]
            sources = self._sources(current)
            missing = [source for source in sources if source not in self._found]
            if current in self._found or not missing:
                stack.pop()
                if current not in self._found:
                    self._found[current] = self._evaluated(current, sources)
            else:
                stack.extend(missing)
        found = self._found[value]
        self._found.clear()
        return found

    def _sources(self, value: SSAValue) -> tuple[SSAValue, ...]:
        op = value.owner
        if isinstance(op, Block):
            return ()
        if isinstance(op, ParameterOp):
            made = self.prepared.get(op.key.data)
            return () if made is None else (made,)
        return tuple(op.operands)

    def _evaluated(self, value: SSAValue, sources: tuple[SSAValue, ...]) -> Array | None:
        op = value.owner
        if isinstance(op, Block):
            return None
        operands = [self._found[source] for source in sources]
        if isinstance(op, ParameterOp):
            return operands[0] if operands else self.parameters.get(op.key.data)
        if not isinstance(op, TensorOp) or any(operand is None for operand in operands):
            return None
        inputs = [elements(operand) for operand in op.operands]
        most = max(MOST_NUMBERS, min(sum(inputs), MOST_ELEMENTS), *inputs)
        if sum(map(elements, op.results)) > most:
            return None  # weights that are repeated would fill the memory
        try:
            with np.errstate(all="ignore"):
                results = op.evaluate(*cast("list[Array]", operands))
        except (BraidError, *OPERAND_ERRORS):
            return None
        return dict(zip(op.results, results, strict=True))[cast(Any, value)]
