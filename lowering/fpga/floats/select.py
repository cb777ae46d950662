"""Select the orders of a graph's nests: the fastest whose operators fit a number of DSPs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from braid.dialects.braid.scalar import Apply, walk
from braid.lowering.fpga.floats.design import FloatDesign, design_of_graph
from braid.lowering.fpga.floats.nodes import Graph, Key, Node, Read
from braid.lowering.fpga.floats.orders import Order, orders_of
from braid.lowering.fpga.floats.search import Option, Search
from braid.solvers.hls.estimate import Estimate, estimate
from braid.solvers.hls.nests import Design
from braid.solvers.hls.resources import dsps_of
from braid.solvers.hls.schedule import Operators, schedule
from braid.solvers.hls.timing import Deadlock
from braid.support.errors import BraidError

_TRIED = 12
"""Limits of cycles from the least on for which whole designs are estimated, and as many further."""
_STEP = 1.004
"""The least ratio between the further intervals."""


@dataclass(frozen=True)
class Selected:
    """The chosen design, its resources, and a bound.

    No design with as many DSPs takes fewer cycles than `lower_bound`, since each of its multipliers
    has some and makes one product a cycle.
    """

    design: FloatDesign
    found: Estimate
    lower_bound: int


def select_orders(graph: Graph, name: str, operators: Operators, dsps: int) -> Selected:
    """Raise BraidError where no design has so few DSPs."""
    options = {node.key: _options(node, operators, dsps) for node in graph.nodes}
    best: tuple[int, FloatDesign, Estimate] | None = None
    limits = sorted({one.cycles for own in options.values() for one in own})
    floor = max(min((one.cycles for one in own), default=0) for own in options.values())
    for needs_streams in (True, False):
        search = Search(graph, options, needs_streams)
        low = search.least([limit for limit in limits if limit >= floor], dsps)
        for limit in _sampled(low):
            if best is not None and limit >= best[0]:
                break
            found = _fitting(search, limit, dsps, name, operators)
            if found is not None and (best is None or found[1].cycles < best[0]):
                best = found[1].cycles, *found
    if best is None:
        raise BraidError(
            f"no loop nests of '{name}' have at most {dsps} DSPs",
            hint="each product takes three and each sum two; give more",
        )
    _, design, found = best
    design = _with_depths(design, found, operators)
    return Selected(design, found, _bound(graph, operators, dsps))


def _sampled(limits: Sequence[int]) -> Iterator[int]:
    """Yield the first ones, and then some that are further apart."""
    yield from limits[:_TRIED]
    last, left = limits[_TRIED - 1] if len(limits) >= _TRIED else 0, _TRIED
    for limit in limits[_TRIED:]:
        if left and limit >= last * _STEP:
            yield limit
            last, left = limit, left - 1


def _fitting(
    search: Search, limit: int, dsps: int, name: str, operators: Operators
) -> tuple[FloatDesign, Estimate] | None:
    """Return the fastest within the limit; addresses need multipliers that only whole
    designs show.
    """
    allowed = dsps
    while (picked := search.fastest(limit, allowed)) is not None:
        found = _estimated(search.graph, picked, name, operators)
        if found is None:
            return None
        excess = found[1].resources.dsps - dsps
        if excess <= 0:
            return found
        allowed -= excess
    return None


def _options(node: Node, operators: Operators, dsps: int) -> list[Option]:
    """Return the orders that no other betters in cycles and DSPs, for each way to stream."""
    kinds: dict[object, list[Option]] = {}
    cheapest = min((n for n in operators.dsps.values() if n), default=1)
    for order in orders_of(node, operators, max(1, dsps // cheapest)):
        for interval in _intervals(node, order):
            option = _measured(node, replace(order, interval=interval), operators)
            if option.dsps <= dsps:
                kinds.setdefault(option.kind, []).append(option)
    return [option for own in kinds.values() for option in _pareto(own)]


def _intervals(node: Node, order: Order) -> list[int]:
    """Return intervals; only nests without sums are slowed down on purpose, to share operators."""
    if node.combine is not None and any(node.extents[at] > 1 for at in node.reductions):
        return [1]
    lanes = order.lanes[1]
    return sorted({one for one in (1, 2, 4, 8, lanes) if one <= max(lanes, 1)})


def _measured(node: Node, order: Order, operators: Operators) -> Option:
    inputs = tuple(dict.fromkeys(read.source for read in node.reads))
    graph = Graph((node,), (node.key,), {}, inputs)
    design = design_of_graph(graph, {node.key: order}, "alone", operators)
    body = design.functions[0].body
    nest = body.nest("alone")
    plan = schedule(nest, {}, operators)
    cycles = (nest.iterations - 1) * plan.interval + plan.depth
    bounded = bool(order.bounds)
    kind = tuple(order.sequence(range(len(node.extents)))), order.unrolled, bounded
    written = tuple(order.sequence(range(node.parallel))), order.lanes, bounded
    dsps = dsps_of(nest, plan, operators)
    outer = [at for at in node.reductions if node.extents[at] > 1]
    first = _last_of(order, outer) * plan.interval + plan.depth
    reads = tuple(_last_of(order, _dims(read)) * plan.interval for read in node.reads)
    made = replace(order, interval=plan.interval)
    return Option(made, cycles, dsps, first, reads, kind, written)


def _dims(read: Read) -> list[int]:
    names = frozenset[str]().union(*(one.variables for one in read.index))
    return [int(name[1:]) for name in names]


def _last_of(order: Order, dims: Sequence[int]) -> int:
    """Return the first iteration in which the loops of these dims have reached their ends."""
    names = frozenset[str]().union(*(order.index[at].variables for at in dims))
    at = 0
    for loop in order.loops:
        at = at * loop.trips + (loop.trips - 1 if loop.name in names else 0)
    return at


def _pareto(options: Sequence[Option]) -> list[Option]:
    kept: list[Option] = []
    for one in sorted(options, key=lambda option: (option.cycles, option.dsps)):
        if not kept or one.dsps < kept[-1].dsps:
            kept.append(one)
    return kept


def _estimated(
    graph: Graph,
    picked: Mapping[Key, Order],
    name: str,
    operators: Operators,
) -> tuple[FloatDesign, Estimate] | None:
    design = design_of_graph(graph, picked, name, operators)
    try:
        return design, estimate(design.nests(), operators)
    except Deadlock:
        return None


def _with_depths(design: FloatDesign, found: Estimate, operators: Operators) -> FloatDesign:
    """Shorten streams while nothing ends later."""
    for port in design.between:
        while port.is_stream and port.depth > 2:
            before, port.depth = port.depth, max(2, port.depth // 2)
            if _cycles(design.nests(), operators) != found.cycles:
                port.depth = before
                break
    return design


def _cycles(design: Design, operators: Operators) -> int | None:
    try:
        return estimate(design, operators).cycles
    except Deadlock:
        return None


def _bound(graph: Graph, operators: Operators, dsps: int) -> int:
    products = 0
    for node in graph.nodes:
        points = 1
        for extent in node.extents:
            points *= extent
        products += points * _products(node)
    return -(-products // max(1, dsps // operators.dsps["mul"]))


def _products(node: Node) -> int:
    return sum(isinstance(one, Apply) and one.operation == "mul" for one in walk(node.body))
