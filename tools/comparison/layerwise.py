"""Comparing two ways to run a model op by op."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from braid.dialects.braid.dtypes import holds_floats
from braid.dialects.braid.names import names_of
from braid.dialects.braid.ports import name_dictionaries
from braid.driver.sources.signature import entry_of, signature_of
from braid.tools.comparison.nested_results import hand_out_results, one_tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """The distance of an op's result from the reference: ‖y − ref‖∞ / ‖ref‖∞, infinite for NaNs."""

    name: str
    error: float


def expose_results(module: ModuleOp, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Make the results of the named ops of `@main` further outputs of the model, in place.

    Only ops with one tensor result count. If `names` is given, ops outside of control flow count
    only if their name is among them. The output of an op inside control flow is that of the last
    iteration; `nested_results.has_run` tells whether the op ran in it. Returns the names of all
    outputs in the order in which the ops stand, which is the order in which to look for the first
    difference.
    """
    function = entry_of(module)
    nested = dict(map(hand_out_results, list(function.body.block.ops)))
    terminator = function.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    outputs: dict[SSAValue, str] = dict(
        zip(terminator.operands, (s.name for s in signature_of(module)[1]), strict=False)
    )
    wanted = None if names is None else set(names)
    taken = set(outputs.values())
    order: list[str] = []
    for op in function.body.block.ops:
        inside = {value: name for name, value in nested.get(op, ()) if name not in taken}
        outputs |= inside
        taken.update(inside.values())
        order += inside.values()
        name = next((n for n in names_of(op) if wanted is None or n in wanted), None)
        if one_tensor(op) and op.results[0] not in outputs and name not in {None, *taken}:
            assert name is not None
            outputs[op.results[0]] = name
            taken.add(name)
        order += [outputs[r] for r in op.results if r in outputs and r not in inside]
    added = list(outputs)[len(set(terminator.operands)) :]
    _append_outputs(module, {outputs[value]: value for value in added})
    return tuple(order)


def _append_outputs(module: ModuleOp, added: Mapping[str, SSAValue]) -> None:
    function = entry_of(module)
    terminator = function.body.block.last_op
    assert terminator is not None
    before = [spec.name for spec in signature_of(module)[1]]
    terminator.operands = [*terminator.operands, *added.values()]
    function.function_type = FunctionType.from_lists(
        list(function.function_type.inputs.data), [value.type for value in terminator.operands]
    )
    function.res_attrs = name_dictionaries((*before, *added))


def relative_error(actual: Array, reference: Array) -> float:
    """Return ‖actual − reference‖∞ / ‖reference‖∞; for integers and booleans 0 or infinity.

    Elements that are equal, infinities and NaNs at the same places too, differ by nothing.
    """
    if actual.shape != reference.shape:
        return float("inf")
    if not holds_floats(np.asarray(reference).dtype):
        return 0.0 if np.array_equal(actual, reference) else float("inf")
    a, r = actual.astype(np.float64), reference.astype(np.float64)
    unequal = ~((a == r) | (np.isnan(a) & np.isnan(r)))
    if not unequal.any():
        return 0.0
    finite = np.isfinite(r)
    if not (np.isfinite(a[unequal]) & finite[unequal]).all():
        return float("inf")
    largest = float(np.abs(r[finite]).max())
    error = np.abs(a[unequal] - r[unequal]).max()
    return float(error) / largest if largest else float("inf")


def differences(
    order: Iterable[str], actual: Mapping[str, Array], reference: Mapping[str, Array]
) -> list[Difference]:
    """Return the error of every value that both sides have, in `order`."""
    return [
        Difference(name, relative_error(actual[name], reference[name]))
        for name in order
        if name in actual and name in reference
    ]
