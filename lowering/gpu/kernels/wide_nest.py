"""Elementwise nests with accesses of 16 bytes: a thread computes neighbours in the last dims.

The nest is parallel and writes dense buffers at its own indices. A thread has as many points as
make 16 bytes of the narrowest element; operands with the same indices are read as vectors, others
element by element, or once where neighbours share an element. Where the end of a buffer is nearer
than that, or one does not begin at a multiple of 16 bytes, threads go element by element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    UnregisteredOp,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import apply_map, delinearized, index_constant
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread

ACCESS_BYTES = 16
"""The widest access of a GPU."""
_MOST_BYTES = 64
"""Of one operand for a thread: more would cost registers and gain nothing."""


@dataclass(frozen=True)
class WideNest:
    """A nest of which a thread computes `width` points that lie next to each other."""

    nest: linalg.GenericOp
    extents: tuple[int, ...]
    maps: tuple[AffineMap, ...]
    width: int

    @staticmethod
    def of(own: ThreadNest) -> "WideNest | None":
        """The nest with wide accesses; None where nothing would be accessed so."""
        nest = own.nest
        if own.reduced or not isinstance(nest, linalg.GenericOp) or own.points < 2:
            return None
        if any(isinstance(op, linalg.IndexOp) for op in nest.body.block.ops):
            return None
        types = [cast(MemRefType[Any], value.type) for value in nest.operands]
        identity = AffineMap.identity(len(own.extents))
        first = len(nest.inputs)
        for type, map, argument in zip(
            types[first:], own.maps[first:], nest.body.block.args[first:], strict=True
        ):
            if map != identity or not _is_dense(type, own.extents) or argument.uses:
                return None
        used = [t for t, a in zip(types[:first], nest.body.block.args, strict=False) if a.uses]
        sizes = [bytes_of(type.element_type) for type in (*used, *types[first:])]
        width = min(ACCESS_BYTES // min(sizes), _MOST_BYTES // max(sizes))
        if width < 2 or own.points < width:
            return None
        return WideNest(nest, own.extents, own.maps, width)

    @property
    def points(self) -> int:
        """How many elements each result has."""
        return prod(self.extents)

    @property
    def threads(self) -> int:
        """How many threads have work."""
        return -(-self.points // self.width)

    def emit(self, builder: Builder, threads: int) -> None:
        """The code of one thread, of which there are `threads` in a block."""
        index = global_thread(builder, threads)
        width, points = (index_constant(builder, n) for n in (self.width, self.points))
        start = builder.insert(arith.MuliOp(index, width)).result
        last = index_constant(builder, self.points - self.width)
        fits = builder.insert(arith.CmpiOp(start, last, "ule")).result
        wide = builder.insert(arith.AndIOp(fits, is_aligned(builder, self._used()))).result
        end = builder.insert(arith.AddiOp(start, width)).result
        stop = builder.insert(arith.MinUIOp(end, points)).result
        first, second = scf.YieldOp(), scf.YieldOp()
        builder.insert(scf.IfOp(wide, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), start)
        self._emit_single(Builder(InsertPoint.before(second)), start, stop)

    def _used(self) -> list[SSAValue]:
        nest = self.nest
        pairs = zip(nest.inputs, nest.body.block.args, strict=False)
        return [*(value for value, argument in pairs if argument.uses), *nest.outputs]

    def _emit_single(self, builder: Builder, start: SSAValue, stop: SSAValue) -> None:
        end = scf.YieldOp()
        body = Block([end], arg_types=[IndexType()])
        builder.insert(scf.ForOp(start, stop, index_constant(builder, 1), (), body))
        inside = Builder(InsertPoint.before(end))
        point = delinearized(inside, body.args[0], self.extents)
        loads: dict[SSAValue, SSAValue] = {}
        for argument, operand, map in self._inputs():
            load = memref.LoadOp.get(operand, _index(inside, map, point))
            loads[argument] = inside.insert(load).res
        results = self._compute(inside, loads)
        for result, output in zip(results, self.nest.outputs, strict=True):
            inside.insert(memref.StoreOp.get(result, output, point))

    def _emit_wide(self, builder: Builder, start: SSAValue) -> None:
        columns = self._columns(builder, start)
        lanes: list[Sequence[SSAValue]] = []
        for n in range(self.width):
            values = {argument: column(builder, n) for argument, column in columns.items()}
            lanes.append(self._compute(builder, values))
        for number, output in enumerate(self.nest.outputs):
            elements = [lane[number] for lane in lanes]
            store_vector(builder, elements, flat(builder, output), start)

    def _columns(
        self, builder: Builder, start: SSAValue
    ) -> dict[SSAValue, Callable[[Builder, int], SSAValue]]:
        """For each operand, what gives its element for the n-th point of the thread."""
        columns: dict[SSAValue, Callable[[Builder, int], SSAValue]] = {}
        identity = AffineMap.identity(len(self.extents))
        for argument, operand, map in self._inputs():
            type = cast(MemRefType[Any], operand.type)
            if map == identity and _is_dense(type, self.extents):
                loaded = load_vector(builder, flat(builder, operand), start, self.width)
                columns[argument] = lambda b, n, loaded=loaded: element_of(b, loaded, n)
                continue
            dims = {dim for expr in map.results for dim in expr.used_dims()}
            last = len(self.extents) - 1
            even = self.extents[-1] % self.width == 0
            if not dims or (even and last not in dims):
                point = delinearized(builder, start, self.extents)
                shared = builder.insert(memref.LoadOp.get(operand, _index(builder, map, point))).res
                columns[argument] = lambda b, n, shared=shared: shared
            elif even and _follows_last_dim(map, type, last):
                point = delinearized(builder, start, self.extents)
                loaded = load_vector(builder, operand, _index(builder, map, point), self.width)
                columns[argument] = lambda b, n, loaded=loaded: element_of(b, loaded, n)
            else:
                columns[argument] = self._scattered(operand, map, start)
        return columns

    def _scattered(
        self, operand: SSAValue, map: AffineMap, start: SSAValue
    ) -> Callable[[Builder, int], SSAValue]:
        """Elements that lie anywhere."""

        def column(builder: Builder, n: int) -> SSAValue:
            own = builder.insert(arith.AddiOp(start, index_constant(builder, n))).result
            point = delinearized(builder, own, self.extents)
            return builder.insert(memref.LoadOp.get(operand, _index(builder, map, point))).res

        return column

    def _inputs(self) -> list[tuple[SSAValue, SSAValue, AffineMap]]:
        nest = self.nest
        triples = zip(nest.body.block.args, nest.inputs, self.maps, strict=False)
        return [(argument, value, map) for argument, value, map in triples if argument.uses]

    def _compute(self, builder: Builder, values: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        return compute(builder, self.nest, values)


def is_aligned(builder: Builder, buffers: Sequence[SSAValue]) -> SSAValue:
    """Whether every buffer begins at a multiple of 16 bytes: the same for all threads."""
    bits: SSAValue | None = None
    for buffer in dict.fromkeys(buffers):
        address = builder.insert(memref.ExtractAlignedPointerAsIndexOp.get(buffer))
        own = address.aligned_pointer
        bits = own if bits is None else builder.insert(arith.OrIOp(bits, own)).result
    assert bits is not None
    mask = index_constant(builder, ACCESS_BYTES - 1)
    rest = builder.insert(arith.AndIOp(bits, mask)).result
    return builder.insert(arith.CmpiOp(rest, index_constant(builder, 0), "eq")).result


def compute(
    builder: Builder, nest: linalg.GenericOp, values: dict[SSAValue, SSAValue]
) -> list[SSAValue]:
    """The results of a nest's body for these values of its arguments."""
    own = dict(values)
    for op in nest.body.block.ops:
        if isinstance(op, linalg.YieldOp):
            return [own.get(result, result) for result in op.arguments]
        builder.insert(op.clone(own))
    raise AssertionError("a nest yields")


def flat(builder: Builder, buffer: SSAValue) -> SSAValue:
    """A dense buffer with one dim."""
    type = cast(MemRefType[Any], buffer.type)
    shape = type.get_shape()
    if len(shape) == 1:
        return buffer
    if not shape:
        expand = memref.ExpandShapeOp.create(
            operands=[buffer],
            result_types=[MemRefType(type.element_type, [1])],
            properties={
                "reassociation": ArrayAttr(()),
                "static_output_shape": DenseArrayBase.from_list(i64, [1]),
            },
        )
        return builder.insert(expand).results[0]
    dims = ArrayAttr([ArrayAttr([IntegerAttr(n, i64) for n in range(len(shape))])])
    collapse = memref.CollapseShapeOp.create(
        operands=[buffer],
        result_types=[MemRefType(type.element_type, [prod(shape)])],
        properties={"reassociation": dims},
    )
    return builder.insert(collapse).results[0]


def load_vector(
    builder: Builder, buffer: SSAValue, index: SSAValue | Sequence[SSAValue], width: int
) -> SSAValue:
    """So many elements from `index` on, which is aligned to all of them or to 16 bytes.

    Bools are read one by one: they are bytes in memory, and in vectors bits.
    """
    element = cast(MemRefType[Any], buffer.type).element_type
    indices = [index] if isinstance(index, SSAValue) else list(index)
    if element == i1:
        places = [_behind(builder, indices, number) for number in range(width)]
        single = [builder.insert(memref.LoadOp.get(buffer, place)).res for place in places]
        return builder.insert(_from_elements(single, VectorType(element, [width]))).results[0]
    load = vector.LoadOp(buffer, indices, VectorType(element, [width]))
    load.attributes["alignment"] = _alignment(element, width)
    return builder.insert(load).results[0]


def store_vector(
    builder: Builder,
    elements: Sequence[SSAValue],
    buffer: SSAValue,
    index: SSAValue | Sequence[SSAValue],
) -> None:
    """Writes elements from `index` on, aligned likewise; bools one by one."""
    element = cast(MemRefType[Any], buffer.type).element_type
    type = VectorType(element, [len(elements)])
    indices = [index] if isinstance(index, SSAValue) else list(index)
    if element == i1:
        for number, value in enumerate(elements):
            place = _behind(builder, indices, number)
            builder.insert(memref.StoreOp.get(value, buffer, place))
        return
    whole = builder.insert(_from_elements(elements, type)).results[0]
    store = vector.StoreOp(whole, buffer, indices)
    store.attributes["alignment"] = _alignment(element, len(elements))
    builder.insert(store)


def _behind(builder: Builder, index: Sequence[SSAValue], number: int) -> list[SSAValue]:
    """The indices of an element so many behind, along the last dim."""
    if number == 0:
        return list(index)
    last = builder.insert(arith.AddiOp(index[-1], index_constant(builder, number)))
    return [*index[:-1], last.result]


def element_of(builder: Builder, loaded: SSAValue, number: int) -> SSAValue:
    """An element of a vector."""
    element = cast(VectorType[Any], loaded.type).element_type
    return builder.insert(vector.ExtractOp(loaded, [number], element)).results[0]


def _from_elements(elements: Sequence[SSAValue], type: Attribute) -> Any:
    made = UnregisteredOp.with_name("vector.from_elements")
    return made.create(operands=list(elements), result_types=[type])


def _alignment(element: Attribute, width: int) -> IntegerAttr[Any]:
    return IntegerAttr(min(ACCESS_BYTES, width * bytes_of(element)), i64)


def _is_dense(type: MemRefType[Any], extents: Sequence[int]) -> bool:
    return isinstance(type.layout, NoneAttr) and tuple(type.get_shape()) == tuple(extents)


def _follows_last_dim(map: AffineMap, type: MemRefType[Any], last: int) -> bool:
    """Whether neighbours in the last dim are neighbours in a dense buffer, at even places."""
    *others, inner = map.results
    return (
        isinstance(type.layout, NoneAttr)
        and isinstance(inner, AffineDimExpr)
        and inner.position == last
        and all(last not in expr.used_dims() for expr in others)
    )


def _index(builder: Builder, map: AffineMap, point: Sequence[SSAValue]) -> list[SSAValue]:
    return [
        point[expr.position] if isinstance(expr, AffineDimExpr) else apply_map(builder, expr, point)
        for expr in map.results
    ]
