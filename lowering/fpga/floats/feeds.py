"""Let a nest take a producer's results from a stream, where both go through them in one order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from braid.lowering.fpga.floats.domains import dim
from braid.lowering.fpga.floats.nodes import Node, Read
from braid.lowering.fpga.floats.orders import Order
from braid.solvers.hls.nests import Affine, Condition, Loop


@dataclass(frozen=True)
class Feed:
    """Lanes of a stream are taken where all of `guards` hold, in an unrolled loop `lane`.

    They are kept in a buffer of `shape`: incoming elements are at `taken`, and the elements that an
    iteration needs at `needed`. Without a buffer each is used where it comes.
    """

    lane: Loop | None
    guards: tuple[Condition, ...]
    shape: tuple[int, ...]
    taken: tuple[Affine, ...]
    needed: tuple[Affine, ...]
    is_direct: bool = False


def feed_of(
    producer: tuple[Node, Order], consumer: tuple[Node, Order], read: Read
) -> tuple[Order, Feed] | None:
    """Return the consumer's order, in which a loop may be split; None where the orders differ."""
    node, order = consumer
    dims = _dims(read)
    if dims is None or producer[0].place is not None:
        return None
    given = _sequence(*producer)
    lane_dim, lanes = producer[1].lanes
    wanted = [dims[at] for at in given]
    used = [one for one in dims if one is not None and node.extents[one] > 1]
    if None in wanted or sorted(used) != sorted(one for one in wanted if one is not None):
        return None
    own = [one for one in wanted if one is not None]
    if order.sequence(own) != [one for one in own if _has_loop(order, one)]:
        return None
    target = None if lane_dim < 0 else dims[lane_dim]
    if target is None:
        return order, _feed(node, order, own, None, None, 1)
    unrolled = [one for one in own if one != target and _lanes(order, one) > 1]
    if unrolled or (own and own[-1] != target):
        return None
    same = _lanes(order, target)
    if same == lanes and _bounded(order, target) == bool(producer[1].bounds):
        lane = _unrolled(order, target)
        return order, _feed(node, order, own, target, lane, lanes)
    split = _split(node, order, target, lanes)
    if split is None or producer[1].bounds:
        return None
    return split, _feed(node, split, own, target, Loop("lane", lanes), lanes)


def _dims(read: Read) -> list[int | None] | None:
    """Return the consumer's dim of each dim of the read tensor."""
    found: list[int | None] = []
    for one in read.index:
        if one.constant or len(one.terms) > 1 or any(factor != 1 for _, factor in one.terms):
            return None
        found.append(int(one.terms[0][0][1:]) if one.terms else None)
    known = [one for one in found if one is not None]
    return found if read.padding is None and len(set(known)) == len(known) else None


def _sequence(node: Node, order: Order) -> list[int]:
    """Return the dims in whose order a result is written, the lanes' last."""
    parallel = [at for at in range(node.parallel) if node.extents[at] > 1]
    found = order.sequence(parallel)
    return found + [at for at in parallel if at not in found]


def _has_loop(order: Order, at: int) -> bool:
    return any(loop.name in order.index[at].variables for loop in order.loops)


def _unrolled(order: Order, at: int) -> Loop | None:
    return next((one for one in order.unrolled if one.name in order.index[at].variables), None)


def _lanes(order: Order, at: int) -> int:
    loop = _unrolled(order, at)
    return 1 if loop is None else loop.trips


def _bounded(order: Order, at: int) -> bool:
    return any(one.value.variables & order.index[at].variables for one in order.bounds)


def _split(node: Node, order: Order, at: int, lanes: int) -> Order | None:
    """Return the loop of a dim as two loops; the inner one runs over `lanes` numbers."""
    own, name = _lanes(order, at), dim(at)
    loop = next((one for one in order.loops if one.name == name), None)
    if loop is None or lanes % own or node.extents[at] % lanes or _bounded(order, at):
        return None
    inner = lanes // own
    if inner == 1 or loop.trips % inner or dict(order.index[at].terms).get(name) != own:
        return None
    if loop.trips == inner:
        return order
    place = order.loops.index(loop)
    outer, within = Loop(f"{name}o", loop.trips // inner), Loop(name, inner)
    loops = (*order.loops[:place], outer, within, *order.loops[place + 1 :])
    index = list(order.index)
    index[at] += Affine.of(0, {outer.name: lanes})
    return replace(order, loops=loops, index=tuple(index))


def _feed(
    node: Node, order: Order, own: Sequence[int], target: int | None, lane: Loop | None, lanes: int
) -> Feed:
    inside = frozenset[str]().union(*(order.index[at].variables for at in own))
    splits = lane is not None and lane.name == "lane"
    waiting = [
        loop.name
        for loop in order.loops
        if loop.trips > 1
        and (
            loop.name not in inside or (splits and target is not None and loop.name == dim(target))
        )
    ]
    others = [one for one in order.unrolled if one.name not in inside]
    guards = tuple(Condition(Affine(0, ((name, 1),))) for name in waiting)
    if not waiting and not others:
        return Feed(lane, (), (), (), (), is_direct=True)
    kept: set[str] = {one.name for one in order.unrolled}
    for loop in order.loops:
        if kept & set(waiting) or loop.name in waiting:
            kept.add(loop.name)
    needed: list[Affine] = []
    taken: list[Affine] = []
    for at in own:
        full = order.index[at]
        index = Affine.of(full.constant, {n: f for n, f in full.terms if n in kept})
        coming = index
        if at == target and splits and lane is not None:
            terms = {n: f for n, f in index.terms if n == f"{dim(at)}o"}
            coming = Affine.of(0, {**terms, lane.name: 1})
        needed.append(index)
        taken.append(coming)
    trips = {loop.name: loop.trips for loop in (*order.loops, *order.unrolled)}
    shape = [one.limits(trips)[1] + 1 for one in needed]
    places = [at for at, size in enumerate(shape) if size > 1] or [0]
    if not shape:
        return Feed(lane, guards, (1,), (Affine(),), (Affine(),))
    return Feed(
        lane,
        guards,
        tuple(shape[at] for at in places),
        tuple(taken[at] for at in places),
        tuple(needed[at] for at in places),
    )
