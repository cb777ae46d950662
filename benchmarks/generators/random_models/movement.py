"""Drawing ops that move elements."""

from math import prod

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from benchmarks.generators.random_models.draft import Draft, Value


def _any(draft: Draft, least_rank: int = 0) -> Value | None:
    return draft.pick(lambda v: v.rank >= least_rank)


def _axis(draft: Draft, value: Value) -> int:
    return draft.draw(st.integers(-value.rank, value.rank - 1))


def _moved(
    draft: Draft, op: str, value: Value, *others: Value | None, **attributes: object
) -> None:
    draft.add(op, [value, *others], exact=value.exact, bound=value.bound, **attributes)


def transpose(draft: Draft) -> None:
    if value := _any(draft, 1):
        _moved(draft, "Transpose", value, perm=draft.draw(st.permutations(range(value.rank))))


def reshape(draft: Draft) -> None:
    if value := _any(draft):
        dims = list(draft.draw(st.permutations(value.shape)))
        at = draft.draw(st.integers(0, len(dims)))
        dims.insert(at, 1)
        if len(dims) > 2 and draft.draw(st.booleans()):
            dims[:2] = [dims[0] * dims[1]]
        if draft.draw(st.booleans()) and 0 not in dims:
            dims[draft.draw(st.integers(0, len(dims) - 1))] = -1
        # A 0 would else be the extent of the operand at its place.
        _moved(draft, "Reshape", value, draft.integers(*dims), allowzero=int(0 in dims))


def squeeze(draft: Draft) -> None:
    value = draft.pick(lambda v: 1 in v.shape)
    if value:
        axis = draft.draw(st.sampled_from([i for i, d in enumerate(value.shape) if d == 1]))
        _moved(draft, "Squeeze", value, draft.integers(axis))


def unsqueeze(draft: Draft) -> None:
    if (value := _any(draft)) and value.rank < 6:
        _moved(draft, "Unsqueeze", value, draft.integers(draft.draw(st.integers(0, value.rank))))


def flatten(draft: Draft) -> None:
    if value := _any(draft, 1):
        _moved(draft, "Flatten", value, axis=draft.draw(st.integers(0, value.rank)))


def concat(draft: Draft) -> None:
    if value := _any(draft, 1):
        axis = _axis(draft, value)
        shape = list(value.shape)
        shape[axis] = draft.draw(st.integers(1, 3))
        other = draft.weight(value.type, tuple(shape))
        parts = draft.draw(st.sampled_from(([value, other], [other, value], [value, value, other])))
        bound = max(value.bound, other.bound)
        draft.add("Concat", parts, axis=axis, exact=value.exact, bound=bound)


def split(draft: Draft) -> None:
    value = draft.pick(lambda v: v.rank >= 1 and max(v.shape) >= 2)
    if value:
        axis = int(np.argmax(value.shape))
        first = draft.draw(st.integers(1, value.shape[axis] - 1))
        sizes = draft.integers(first, value.shape[axis] - first)
        draft.add(
            "Split", [value, sizes], outputs=2, axis=axis, exact=value.exact, bound=value.bound
        )


FAR = (-(2**63) + 1, -1000, 1000, 2**63 - 2)


def slice_(draft: Draft) -> None:
    """Forward and back, from and to places inside and outside of the dim."""
    if value := _any(draft, 1):
        axis = draft.draw(st.integers(0, value.rank - 1))
        extent = value.shape[axis]
        places = st.one_of(st.integers(-extent - 2, extent + 2), st.sampled_from(FAR))
        start, end = draft.draw(places), draft.draw(places)
        step = draft.draw(st.sampled_from((1, 2, 3, -1, -2, -3)))
        arguments = (draft.integers(n) for n in (start, end, axis, step))
        _moved(draft, "Slice", value, *arguments)


def pad(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float and v.rank >= 1 and min(v.shape, default=0) >= 1)
    if value:
        mode = draft.draw(st.sampled_from(("constant", "reflect", "edge", "wrap")))
        room = [d - 1 if mode == "reflect" else d if mode == "wrap" else 3 for d in value.shape]
        amounts = [draft.draw(st.integers(0, min(r, 3))) for r in (*room, *room)]
        fill = None
        if mode == "constant" and draft.draw(st.booleans()):
            fill = draft.weight(value.type, ())
        bound = max(value.bound, 3.0)
        inputs = [value, draft.integers(*amounts), *([fill] if fill else [])]
        draft.add("Pad", inputs, mode=mode, exact=value.exact, bound=bound)


def expand(draft: Draft) -> None:
    value = draft.pick(lambda v: 1 in v.shape or v.rank < 3)
    if value:
        dims = [draft.draw(st.sampled_from((1, 2, 3, 0))) if d == 1 else d for d in value.shape]
        _moved(draft, "Expand", value, draft.integers(draft.draw(st.integers(1, 2)), *dims))


def tile(draft: Draft) -> None:
    if value := _any(draft, 1):
        repeats = [draft.draw(st.sampled_from((1, 1, 2, 2, 0))) for _ in value.shape]
        _moved(draft, "Tile", value, draft.integers(*repeats))


def _indices(draft: Draft, shape: tuple[int, ...], extent: int) -> Value:
    rng = np.random.default_rng(draft.draw(st.integers(0, 2**31)))
    return draft.constant(rng.integers(-extent, max(extent, 1), shape).astype(np.int64))


def gather(draft: Draft) -> None:
    if value := _any(draft, 1):
        axis = _axis(draft, value)
        shapes = ((), (3,), (2, 2), (0,)) if value.shape[axis] else ((0,), (2, 0))
        shape = draft.draw(st.sampled_from(shapes))
        _moved(draft, "Gather", value, _indices(draft, shape, value.shape[axis]), axis=axis)


def gather_elements(draft: Draft) -> None:
    if value := _any(draft, 1):
        axis = _axis(draft, value)
        shape = list(value.shape)
        shape[axis] = 2 if value.shape[axis] else 0
        indices = _indices(draft, tuple(shape), value.shape[axis])
        _moved(draft, "GatherElements", value, indices, axis=axis)


def gather_nd(draft: Draft) -> None:
    if value := _any(draft, 1):
        depth = draft.draw(st.integers(1, value.rank))
        rng = np.random.default_rng(draft.draw(st.integers(0, 2**31)))
        if 0 in value.shape[:depth]:
            return
        columns = [rng.integers(-d, d, 3) for d in value.shape[:depth]]
        _moved(draft, "GatherND", value, draft.constant(np.stack(columns, -1).astype(np.int64)))


def scatter_elements(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float and v.rank >= 1 and v.bound < 1e4)
    if value and prod(value.shape):
        axis = draft.draw(st.integers(0, value.rank - 1))
        count = draft.draw(st.integers(1, value.shape[axis]))
        shape = list(value.shape)
        shape[axis] = count
        order = np.broadcast_to(
            np.arange(count).reshape([-1 if i == axis else 1 for i in range(value.rank)]), shape
        )
        updates = draft.weight(value.type, tuple(shape))
        inputs = [value, draft.constant(np.ascontiguousarray(order, np.int64)), updates]
        reduction = draft.draw(st.sampled_from(("none", "add", "max", "min")))
        bound = value.bound + updates.bound
        draft.add(
            "ScatterElements",
            inputs,
            axis=axis,
            reduction=reduction,
            exact=value.exact,
            bound=bound,
        )


def depth_to_space(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float and v.rank == 4)
    if value:
        if value.shape[1] % 4 == 0:
            mode = draft.draw(st.sampled_from(("DCR", "CRD")))
            _moved(draft, "DepthToSpace", value, blocksize=2, mode=mode)
        elif value.shape[2] % 2 == value.shape[3] % 2 == 0:
            _moved(draft, "SpaceToDepth", value, blocksize=2)


def trilu(draft: Draft) -> None:
    if value := _any(draft, 2):
        offset = draft.constant(np.array(draft.draw(st.integers(-2, 2)), np.int64))
        _moved(draft, "Trilu", value, offset, upper=draft.draw(st.integers(0, 1)))


def one_hot(draft: Draft) -> None:
    value = draft.pick(lambda v: v.type == TensorProto.INT64 and v.rank <= 3)
    if value:
        depth = draft.constant(np.array(4, np.int64))
        values = draft.constant(np.array([0.25, 1.5], np.float32))
        draft.add("OneHot", [value, depth, values], exact=value.exact, bound=1.5)


DRAWERS = (
    transpose, transpose, reshape, squeeze, unsqueeze, flatten, concat, split, slice_, pad, expand,
    tile, gather, gather_elements, gather_nd, scatter_elements, depth_to_space, trilu, one_hot,
)  # fmt: skip
