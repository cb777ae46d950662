"""Elements at places that are known when a kernel is compiled, as linear accesses.

A resize, or a gather by a constant, becomes a nest whose body loads an element at an index that a
table holds. If the entries of the table, after the body's treatment of negative and other indices,
are an affine map (`s * i + c`) or steps (`i floordiv f + c`) of the index of a dim, the load
becomes an operand with that map. A copy of that kind that one other nest reads is not stored: its
maps are composed. Other entries become a table of the places themselves, of 32 bits: nothing is
done to them when they are read. A dim whose places are steps becomes two, the inner one of extent
`f`:

```mlir
%place = memref.load %table[%i]                                         // 0, 0, 1, 1, 2, 2 …
%element = memref.load %x[%c, %place]
// becomes the operand, over (c, i, r), of the result as memref<8x56x2xf16>
affine_map<(c, i, r) -> (c, i)> of %x : memref<8x56xf16>
```
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint, Rewriter

from braid.lowering.common.loop_nest import loops_of
from braid.lowering.gpu.fallback.split_dims import Access, narrowed, split_access

Table: TypeAlias = npt.NDArray[np.int64]

_INTEGERS: dict[type[Operation], Callable[..., Table]] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
}
_COMPARISONS: dict[int, Callable[..., Table]] = dict(
    enumerate((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
)
"""The comparisons of signed integers, by the number of the predicate."""


def known_places_as_maps(module: ModuleOp, function: FuncOp) -> None:
    """Rewrite all nests of the function that load elements at places that are known."""
    tables = _tables(module)
    found = [_with_known_loads(nest, tables) for nest in _nests(function)]
    for nest in found:
        if nest is not None and nest.parent is not None and _only_moves(nest):
            _join_with_reader(function, nest)
    for nest in _nests(function):
        _split_steps(nest)
    for nest in _nests(function):
        _with_tables_of_places(module, nest, tables)
    for op in list(function.body.block.ops):
        if isinstance(op, memref.GetGlobalOp) and not op.memref.uses:
            op.detach()
            op.erase()


def _nests(function: FuncOp) -> list[linalg.GenericOp]:
    return [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]


def _tables(module: ModuleOp) -> dict[str, Table]:
    """Return the constant vectors of integers by name."""
    found: dict[str, Table] = {}
    for op in module.ops:
        if not isinstance(op, memref.GlobalOp):
            continue
        type, value = cast(MemRefType[Any], op.type), op.initial_value
        if len(type.get_shape()) == 1 and isinstance(value, DenseIntOrFPElementsAttr):
            entries = value.get_values()
            if all(isinstance(entry, int) for entry in entries):
                every = entries * (type.get_shape()[0] // max(len(entries), 1))
                found[op.sym_name.data] = np.array(every, np.int64)
    return found


def _with_known_loads(nest: linalg.GenericOp, tables: dict[str, Table]) -> linalg.GenericOp | None:
    """Return the nest with loads at known positions as operands; None without such loads."""
    loops = loops_of(nest)
    places = _places(nest, loops.extents, loops.maps, tables)
    loads: list[tuple[memref.LoadOp, AffineMap]] = []
    for op in nest.body.block.ops:
        if not isinstance(op, memref.LoadOp) or not op.indices or op.memref in nest.outputs:
            continue
        exprs = [places.get(index) or _constant_place(index) for index in op.indices]
        if op.memref.owner.parent is not nest.body.block and None not in exprs:
            own = tuple(expr for expr in exprs if expr is not None)
            loads.append((op, AffineMap(len(loops.extents), 0, own)))
    if not loads:
        return None
    block, first = nest.body.block, len(nest.inputs)
    inputs = [*zip(nest.inputs, loops.maps, strict=False)]
    for op, map in loads:
        argument = block.insert_arg(op.res.type, len(inputs))
        inputs.append(narrowed(nest, (op.memref, map), loops.extents))
        op.res.replace_all_uses_with(argument)
        op.detach()
        op.erase()
    _erase_unused(block)
    for number in reversed(range(len(inputs))):
        if not block.args[number].uses:
            block.erase_arg(block.args[number])
            del inputs[number]
    return _replaced(nest, inputs, loops.maps[first:], nest.outputs)


def _places(
    nest: linalg.GenericOp,
    extents: Sequence[int],
    maps: Sequence[AffineMap],
    tables: dict[str, Table],
) -> dict[SSAValue, AffineExpr]:
    """Return the values of the body that are lines or steps of one dim's index, as expressions."""
    exprs: dict[SSAValue, AffineExpr] = {}
    for value, (dim, table) in _known(nest, extents, maps, tables).items():
        if (expr := _expression(dim, table)) is not None:
            exprs[value] = expr
    return exprs


def _known(
    nest: linalg.GenericOp,
    extents: Sequence[int],
    maps: Sequence[AffineMap],
    tables: dict[str, Table],
) -> dict[SSAValue, tuple[int, Table]]:
    """Return the values of the body that follow from one dim's index: the dim, and one for each
    index.
    """
    known: dict[SSAValue, tuple[int, Table]] = {}
    for argument, operand, map in zip(nest.body.block.args, nest.inputs, maps, strict=False):
        source, expr = operand.owner, map.results[0] if len(map.results) == 1 else None
        if isinstance(source, memref.GetGlobalOp) and isinstance(expr, AffineDimExpr):
            table = tables.get(source.name_.root_reference.data)
            if table is not None:
                known[argument] = (expr.position, table)
    for op in nest.body.block.ops:
        if isinstance(op, linalg.IndexOp):
            dim = op.dim.value.data
            known[op.result] = (dim, np.arange(extents[dim]))
        elif len(op.results) == 1 and (value := _evaluated(op, known)) is not None:
            known[op.results[0]] = value
    return known


def _evaluated(op: Operation, known: dict[SSAValue, tuple[int, Table]]) -> tuple[int, Table] | None:
    """Return the results of an op on values of one dim, for each of its indices."""
    dims = {known[value][0] for value in op.operands if value in known}
    if len(dims) != 1:
        return None
    values = [known[v][1] if v in known else _constant(v) for v in op.operands]
    if any(value is None for value in values):
        return None
    if (function := _function(op)) is None:
        return None
    return dims.pop(), function(*values)


def _function(op: Operation) -> Callable[..., Table] | None:
    """Return the results of an op on integers, for arrays."""
    match op:
        case arith.CmpiOp():
            return _COMPARISONS.get(op.predicate.value.data)
        case arith.SelectOp():
            return np.where
        case arith.IndexCastOp():
            return np.asarray
        case _:
            return _INTEGERS.get(type(op))


def _with_tables_of_places(
    module: ModuleOp, nest: linalg.GenericOp, tables: dict[str, Table]
) -> None:
    """Let loads read their positions from tables that hold them directly."""
    loops = loops_of(nest)
    known = _known(nest, loops.extents, loops.maps, tables)
    block, first = nest.body.block, len(nest.inputs)
    read: set[SSAValue] = {argument for argument in block.args if argument in known}
    for op in block.ops:
        if not read.isdisjoint(op.operands):
            read.update(result for result in op.results if result in known)
    loads = [op for op in block.ops if isinstance(op, memref.LoadOp)]
    used = {index: known[index] for op in loads for index in op.indices if index in read}
    inputs = [*zip(nest.inputs, loops.maps, strict=False)]
    for index, (dim, table) in used.items():
        if table.dtype == np.bool_ or not 0 <= int(table.min()) <= int(table.max()) < 1 << 31:
            continue
        source = _constant_table(module, nest, table)
        argument = block.insert_arg(i32, len(inputs))
        own = (AffineExpr.dimension(dim),)
        inputs.append((source, AffineMap(len(loops.extents), 0, own)))
        place = arith.IndexCastOp(argument, IndexType())
        Builder(InsertPoint.at_start(block)).insert(place)
        index.replace_all_uses_with(place.result)
    if len(inputs) == first:
        return
    _erase_unused(block)
    for number in reversed(range(len(inputs))):
        if not block.args[number].uses:
            block.erase_arg(block.args[number])
            del inputs[number]
    _replaced(nest, inputs, loops.maps[first:], nest.outputs)


def _constant_table(module: ModuleOp, nest: linalg.GenericOp, table: Table) -> SSAValue:
    """Return a constant with these entries, for a nest."""
    name = f"places_{sum(isinstance(op, memref.GlobalOp) for op in module.ops)}"
    type = MemRefType(i32, [len(table)])
    value = DenseIntOrFPElementsAttr.from_list(TensorType(i32, [len(table)]), table.tolist())
    made = memref.GlobalOp.get(
        StringAttr(name), type, value, sym_visibility=StringAttr("private"), constant=UnitAttr()
    )
    first = module.body.block.first_op
    assert first is not None
    module.body.block.insert_op_before(made, first)
    return Builder(InsertPoint.before(nest)).insert(memref.GetGlobalOp(name, type)).memref


def _constant_place(value: SSAValue) -> AffineExpr | None:
    number = _constant(value)
    return None if number is None else AffineExpr.constant(number)


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return cast("IntegerAttr[Any]", op.value).value.data
    return None


def _stays(buffer: SSAValue, since: Operation) -> bool:
    """Return whether no op surely writes a buffer after `op`; ops on its views may."""
    if not isinstance(buffer.owner, Block | memref.AllocOp):
        return False
    users = {use.operation for use in buffer.uses}
    if not all(isinstance(op, linalg.GenericOp | linalg.FillOp) for op in users):
        return False
    op = since.next_op
    while op is not None:
        if op in users and buffer in cast("linalg.GenericOp | linalg.FillOp", op).outputs:
            return False
        op = op.next_op
    return True


def _expression(dim: int, table: Table) -> AffineExpr | None:
    """Return a line or steps of an index, which are these numbers."""
    if table.dtype == np.bool_ or len(table) == 0:
        return None
    index, first = np.arange(len(table)), int(table[0])
    line = int(table[1]) - first if len(table) > 1 else 0
    if line >= 0 and np.array_equal(table, line * index + first):
        own: AffineExpr = AffineExpr.constant(0) if line == 0 else AffineExpr.dimension(dim)
        own = own * line if line > 1 else own
        return own if first == 0 else own + first
    size = int(np.argmax(table != first))
    if size > 1 and np.array_equal(table, index // size + first):
        own = AffineExpr.dimension(dim) // size
        return own if first == 0 else own + first
    return None


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        unused = op.results and not any(result.uses for result in op.results)
        if unused and not op.regions and not isinstance(op, memref.LoadOp):
            op.detach()
            op.erase()


def _replaced(
    nest: linalg.GenericOp,
    inputs: Sequence[Access],
    maps: Sequence[AffineMap],
    outputs: Sequence[SSAValue],
    rank: int | None = None,
) -> linalg.GenericOp:
    """Return the nest with other operands, all of its dims, `rank` of them, being parallel."""
    every = [*(map for _, map in inputs), *maps]
    kinds = list(nest.iterator_types) if rank is None else [IteratorTypeAttr.parallel()] * rank
    made = linalg.GenericOp(
        [value for value, _ in inputs],
        list(outputs),
        nest.detach_region(nest.body),
        [AffineMapAttr(map) for map in every],
        kinds,
    )
    Rewriter.replace_op(nest, made, [])
    return made


def _only_moves(nest: linalg.GenericOp) -> bool:
    """Return whether it only copies elements to a buffer of the kernel's own, in order."""
    block, loops = nest.body.block, loops_of(nest)
    last = block.last_op
    assert last is not None
    return (
        block.first_op is last
        and len(nest.inputs) == len(nest.outputs) == 1
        and last.operands[0] is block.args[0]
        and isinstance(nest.outputs[0].owner, memref.AllocOp)
        and loops.result == AffineMap.identity(len(loops.extents))
    )


def _join_with_reader(function: FuncOp, moving: linalg.GenericOp) -> None:
    """Let the only nest that reads the copy which `moving` makes read its source instead."""
    source, buffer = moving.inputs[0], moving.outputs[0]
    readers = {use.operation for use in buffer.uses} - {moving}
    reader = readers.pop() if len(readers) == 1 else None
    if not isinstance(reader, linalg.GenericOp) or buffer in reader.outputs:
        return
    if not _stays(source, moving):
        return
    own, loops = moving.indexing_maps.data[0].data, loops_of(reader)
    inputs = [
        (source, own.compose(map)) if value is buffer else (value, map)
        for value, map in zip(reader.inputs, loops.maps, strict=False)
    ]
    _replaced(reader, inputs, loops.maps[len(inputs) :], reader.outputs)
    alloc = buffer.owner
    assert isinstance(alloc, memref.AllocOp)
    for op in (moving, alloc):
        op.detach()
        op.erase()


def _split_steps(nest: linalg.GenericOp) -> None:
    """Make two dims of each dim of which an operand's place is `dim floordiv f`."""
    loops = loops_of(nest)
    steps = _steps_of(loops.maps)
    uses_indices = any(isinstance(op, linalg.IndexOp) for op in nest.body.walk())
    if not steps or uses_indices or not all(loops.is_parallel):
        return
    if any(size is None or loops.extents[dim] % size for dim, size in steps.items()):
        return
    known = {dim: size for dim, size in steps.items() if size is not None}
    place, extents = dict[int, int](), list[int]()
    for dim, extent in enumerate(loops.extents):
        place[dim] = len(extents)
        extents += [extent // known[dim], known[dim]] if dim in known else [extent]
    accesses = [
        split_access(nest, value, map, known, place, len(extents))
        for value, map in zip(nest.operands, loops.maps, strict=True)
    ]
    split = [narrowed(nest, access, extents) for access in accesses if access is not None]
    if len(split) == len(accesses):
        count = len(nest.inputs)
        outputs = split[count:]
        values = [value for value, _ in outputs]
        _replaced(nest, split[:count], [map for _, map in outputs], values, len(extents))


def _steps_of(maps: Sequence[AffineMap]) -> dict[int, int | None]:
    """Return the dims and their divisors; None where these differ."""
    steps: dict[int, int | None] = {}
    for inner in (inner for map in maps for expr in map.results for inner in expr.dfs()):
        match inner:
            case AffineBinaryOpExpr(
                AffineBinaryOpKind.FloorDiv, AffineDimExpr(dim), AffineConstantExpr(size)
            ):
                steps[dim] = size if steps.get(dim, size) == size else None
            case _:
                pass
    return steps
