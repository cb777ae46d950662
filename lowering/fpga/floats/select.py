"""Which orders the nests of a graph have: the fastest whose operators fit a number of DSPs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from braid.dialects.braid.scalar import Apply, walk
from braid.lowering.fpga.floats.design import FloatDesign, design_of_graph
from braid.lowering.fpga.floats.feeds import feed_of
from braid.lowering.fpga.floats.nodes import Graph, Key, Node, Read
from braid.lowering.fpga.floats.orders import Order, orders_of
from braid.solvers.hls.estimate import Estimate, estimate
from braid.solvers.hls.nests import Design
from braid.solvers.hls.resources import dsps_of
from braid.solvers.hls.schedule import Operators, schedule
from braid.solvers.hls.timing import Deadlock
from braid.support.errors import BraidError

_TRIED = 12
"""Limits of cycles from the least on for which whole designs are estimated."""


@dataclass(frozen=True)
class Option:
    """An order with cycles and DSPs of its nest by itself.

    Of the same `kind`, orders stream alike; of the same `written` their results.
    """

    order: Order
    cycles: int
    dsps: int
    kind: object
    written: object


@dataclass(frozen=True)
class Selected:
    """The design that was chosen, what it takes, and a bound.

    No design with as many DSPs takes fewer cycles than `lower_bound`, since each of its multipliers
    has some and makes one product a cycle.
    """

    design: FloatDesign
    found: Estimate
    lower_bound: int


def select_orders(graph: Graph, name: str, operators: Operators, dsps: int) -> Selected:
    """Raises BraidError where no design has so few DSPs."""
    options = {node.key: _options(node, operators, dsps) for node in graph.nodes}
    best: tuple[int, FloatDesign, Estimate] | None = None
    limits = sorted({one.cycles for own in options.values() for one in own})
    floor = max(min((one.cycles for one in own), default=0) for own in options.values())
    for needs_streams in (True, False):
        search = _Search(graph, options, dsps, needs_streams)
        low = search.least([limit for limit in limits if limit >= floor])
        for picked in islice(filter(None, map(search.picked, low)), _TRIED):
            found = _estimated(graph, picked, name, operators)
            if found is None or found[1].resources.dsps > dsps:
                continue
            if best is None or found[1].cycles < best[0]:
                best = found[1].cycles, *found
    if best is None:
        raise BraidError(
            f"no loop nests of '{name}' have at most {dsps} DSPs",
            hint="each product takes three and each sum two; give more",
        )
    _, design, found = best
    design = _with_depths(design, found, operators)
    return Selected(design, found, _bound(graph, operators, dsps))


def _options(node: Node, operators: Operators, dsps: int) -> list[Option]:
    """Orders that no other betters in cycles and DSPs, for each way to stream."""
    kinds: dict[object, list[Option]] = {}
    cheapest = min((n for n in operators.dsps.values() if n), default=1)
    for order in orders_of(node, operators, max(1, dsps // cheapest)):
        for interval in _intervals(node, order):
            option = _measured(node, replace(order, interval=interval), operators)
            if option.dsps <= dsps:
                kinds.setdefault(option.kind, []).append(option)
    return [option for own in kinds.values() for option in _pareto(own)]


def _intervals(node: Node, order: Order) -> list[int]:
    """Only nests without sums are slowed down on purpose, to share operators."""
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
    return Option(replace(order, interval=plan.interval), cycles, dsps, kind, written)


def _pareto(options: Sequence[Option]) -> list[Option]:
    kept: list[Option] = []
    for one in sorted(options, key=lambda option: (option.cycles, option.dsps)):
        if not kept or one.dsps < kept[-1].dsps:
            kept.append(one)
    return kept


class _Search:
    """The cheapest orders of all nests within limits of cycles, with streams where `needed`.

    Consumers are chosen first; then each producer needs one that joins those that read it.
    """

    def __init__(
        self,
        graph: Graph,
        options: Mapping[Key, Sequence[Option]],
        dsps: int,
        needed: bool,
    ) -> None:
        self.graph, self.options, self.dsps, self.needed = graph, options, dsps, needed
        self.nodes = {node.key: node for node in graph.nodes}
        self.order = list(reversed(graph.nodes))
        self.known: dict[tuple[object, ...], bool] = {}

    def least(self, limits: Sequence[int]) -> Sequence[int]:
        """The limits from the least on within which a design was found."""
        low, high = 0, len(limits)
        while low < high:
            middle = (low + high) // 2
            if self.picked(limits[middle]) is None:
                low = middle + 1
            else:
                high = middle
        return limits[low:]

    def picked(self, limit: int) -> dict[Key, Order] | None:
        """None where there are none."""
        fitting = {key: _cheapest(own, limit) for key, own in self.options.items()}
        best: list[tuple[int, dict[Key, Order]]] = []
        self._extend(0, {}, fitting, best)
        return best[0][1] if best else None

    def _extend(
        self,
        used: int,
        chosen: dict[Key, Order],
        allowed: dict[Key, list[Option]],
        best: list[tuple[int, dict[Key, Order]]],
    ) -> None:
        left = [allowed[node.key] for node in self.order[len(chosen) :]]
        if not all(left):
            return
        if not left:
            if not self.needed or self._all_join(chosen):
                best[:] = [(used, dict(chosen))]
            return
        rest = used + sum(own[0].dsps for own in left[1:])
        node = self.order[len(chosen)]
        for option in left[0]:
            least = rest + option.dsps
            if least > self.dsps or (best and least >= best[0][0]):
                return
            narrowed = self._narrowed(node, option, allowed) if self.needed else allowed
            chosen[node.key] = option.order
            self._extend(used + option.dsps, chosen, narrowed, best)
            del chosen[node.key]

    def _narrowed(
        self, node: Node, option: Option, allowed: dict[Key, list[Option]]
    ) -> dict[Key, list[Option]]:
        """What is left for the nests that `node` reads."""
        made = dict(allowed)
        for read in node.reads:
            if read.source in self.nodes:
                own = made[read.source]
                made[read.source] = [one for one in own if self._joins(read, one, node, option)]
        return made

    def _joins(self, read: Read, given: Option, node: Node, option: Option) -> bool:
        key = read.source, given.written, node.key, read.index, id(option)
        if key not in self.known:
            producer = self.nodes[read.source], given.order
            self.known[key] = feed_of(producer, (node, option.order), read) is not None
        return self.known[key]

    def _all_join(self, chosen: Mapping[Key, Order]) -> bool:
        """With the loops that streams before have split."""
        for node in self.graph.nodes:
            order = chosen[node.key]
            for read in node.reads:
                if read.source in self.nodes:
                    given = self.nodes[read.source], chosen[read.source]
                    found = feed_of(given, (node, order), read)
                    if found is None:
                        return False
                    order = found[0]
        return True


def _cheapest(options: Sequence[Option], limit: int) -> list[Option]:
    """Of each kind the one with the fewest DSPs, of all kinds in the order of these."""
    kinds: dict[object, Option] = {}
    for one in options:
        if one.cycles <= limit and (one.kind not in kinds or one.dsps < kinds[one.kind].dsps):
            kinds[one.kind] = one
    return sorted(kinds.values(), key=lambda one: one.dsps)


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
    """Shorter streams, while nothing ends later."""
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
