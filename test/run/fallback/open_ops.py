"""Ops with open dims, by the fallback: compiled once, and compared at several sizes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, Block
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import TensorOp, tensor_type
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.fallback.emit_fallback import emit_fallback
from braid.support.errors import UnsupportedError
from braid.support.sizes.evaluation import evaluate as value_of
from braid.support.sizes.expression import Extent, symbol
from test.run.fallback.conftest import compare_results, make_group, stored_arrays

Build = Callable[..., TensorOp | Sequence[TensorOp]]
Shapes = Sequence[Sequence[Extent]]

ODD = 7
"""A size next to the one with which an op was written, and 1."""


def opened(operands: Sequence[Array], *, each: bool = True) -> Iterator[Shapes]:
    """Yield the shapes with all dims open, with all dims of equal extent open, and with `each` dim
    open.

    The symbol of a dim is named by its extent.
    """
    shapes = [array.shape for array in operands]
    extents = sorted({extent for shape in shapes for extent in shape if extent > 1})
    for extent in extents:
        yield [[symbol(f"n{n}") if n == extent else n for n in shape] for shape in shapes]
    if len(extents) > 1:
        yield [[symbol(f"n{n}") if n > 1 else n for n in shape] for shape in shapes]
    for number, shape in enumerate(shapes if each else ()):
        for dim, extent in enumerate(shape):
            found: list[list[Extent]] = [list(other) for other in shapes]
            found[number][dim] = symbol(f"n{extent}")
            yield found


def ops_of(build: Build, operands: Sequence[Array], shapes: Shapes) -> Sequence[TensorOp]:
    """Return the ops that are built on operands like the arrays of these shapes, if there are."""
    types = [tensor_type(from_numpy(x.dtype), s) for x, s in zip(operands, shapes, strict=True)]
    try:
        return _several(build(*Block(arg_types=types).args))
    except VerifyException:
        return []


def _several(made: TensorOp | Sequence[TensorOp]) -> Sequence[TensorOp]:
    return [made] if isinstance(made, TensorOp) else made


@dataclass(frozen=True)
class Case:
    """Ops on operands of open shapes; results are those of the last op, or of every one."""

    build: Build
    operands: Sequence[Array]
    shapes: Shapes
    layouts: Sequence[str]
    every: bool

    def group(self, shapes: Shapes) -> FusedOp | None:
        """Return the group on operands of these shapes, None where it has no meaning.

        All operands and results have the layouts that there are.
        """
        types: list[Attribute] = [
            tensor_type(from_numpy(array.dtype), shape)
            for shape, array in zip(shapes, self.operands, strict=True)
        ]
        for number, tag in enumerate(self.layouts):
            types[number] = with_layout(types[number], Layout.parse(tag))
        try:
            group = make_group(types, lambda *x: _several(self.build(*x)), self.layouts, self.every)
            group.verify()
        except (VerifyException, ValueError, IndexError, UnsupportedError):
            return None
        return group

    def is_right(self, values: Mapping[str, int], call: CallableKernel) -> bool:
        """Compare the results at these sizes; return whether they have a meaning there."""
        shapes = [[value_of(extent, values) for extent in shape] for shape in self.shapes]
        arrays = [
            np.resize(array, shape) for array, shape in zip(self.operands, shapes, strict=True)
        ]
        group = self.group(shapes)
        if group is None:
            return False
        stored, outputs = stored_arrays(group, arrays)
        end = value_of(call.grid, values)
        for begin in (2 * end // 3, end // 3, 0):
            call(*stored, *outputs, begin=begin, end=end, symbols=values)
            end = begin
        compare_results(group, arrays, outputs)
        return True


def check_sizes(
    build: Build,
    operands: Sequence[Array],
    shapes: Shapes,
    *,
    layouts: Sequence[str] = (),
    every: bool = False,
    sizes: Sequence[int] = (0, 1, ODD),
) -> int:
    """Compare ops with their semantics, compiled once, at three sizes; 0 is the original one.

    Returns the number of sizes at which they are valid, 0 if they are not with these dims open.
    """
    case = Case(build, operands, shapes, layouts, every)
    group = case.group(shapes)
    if group is None:
        return 0
    kernel = emit_fallback(group, "tested")
    kernel.module.verify()
    call = CallableKernel(kernel)
    symbols = {str(extent) for shape in shapes for extent in shape if not isinstance(extent, int)}
    return sum(
        case.is_right({name: size or int(name[1:]) for name in symbols}, call) for size in sizes
    )
