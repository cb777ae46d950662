"""Search the orders of a graph's nests that go together: the cheapest, or those that end first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from braid.lowering.fpga.floats.feeds import feed_of
from braid.lowering.fpga.floats.nodes import Graph, Key, Node, Read
from braid.lowering.fpga.floats.orders import Order

_MOST_TRIED = 3000
"""Options that `fastest` goes into for a limit."""


@dataclass(frozen=True)
class Option:
    """An order with cycles and DSPs of its nest by itself.

    `first` is the cycle of its first result, `reads` those of the last of each tensor that it
    reads. Orders of the same `kind` stream equally; those of the same `written` stream their
    results equally.
    """

    order: Order
    cycles: int
    dsps: int
    first: int
    reads: tuple[int, ...]
    kind: object
    written: object


@dataclass(frozen=True)
class _Times:
    """The cycles from a nest whose readers are chosen to the end of the design.

    `whole` from its begin on; `tail` from its end on, while others use the last that it wrote. A
    reader begins with the first result, and has something left to do after it has read the last.
    """

    option: Option
    tail: int
    whole: int


class Search:
    """Orders of all nests within limits of cycles, with streams where `needed`.

    Consumers are chosen first; then each producer needs one that joins those that read it.
    """

    def __init__(
        self,
        graph: Graph,
        options: Mapping[Key, Sequence[Option]],
        needed: bool,
    ) -> None:
        self.graph, self.options, self.needed, self.left = graph, options, needed, 0
        self.nodes = {node.key: node for node in graph.nodes}
        self.order = list(reversed(graph.nodes))
        self.known: dict[tuple[object, ...], bool] = {}
        self.readers: dict[Key, list[tuple[Key, int]]] = {node.key: [] for node in graph.nodes}
        for node in graph.nodes:
            for at, read in enumerate(node.reads):
                if read.source in self.nodes:
                    self.readers[read.source].append((node.key, at))

    def least(self, limits: Sequence[int], dsps: int) -> Sequence[int]:
        """Return the limits from the least on within which a design was found."""
        low, high = 0, len(limits)
        while low < high:
            middle = (low + high) // 2
            if self.picked(limits[middle], dsps) is None:
                low = middle + 1
            else:
                high = middle
        return limits[low:]

    def picked(self, limit: int, dsps: int) -> dict[Key, Order] | None:
        """Return the cheapest; None if none has at most this many DSPs."""
        best: list[tuple[int, dict[Key, Order]]] = []
        self._cheapest(0, {}, self._fitting(limit), best, dsps)
        return best[0][1] if best else None

    def fastest(self, limit: int, dsps: int) -> dict[Key, Order] | None:
        """Return the orders whose design ends first; `_Times` says how far overlaps are known.

        Of all that were looked at within `_MOST_TRIED`; without streams the cheapest.
        """
        if not self.needed:
            return self.picked(limit, dsps)
        best: list[tuple[int, dict[Key, Order]]] = []
        self.left = _MOST_TRIED
        fitting = {
            key: sorted(filter(lambda one: one.cycles <= limit, own), key=lambda one: one.dsps)
            for key, own in self.options.items()
        }
        self._fastest(0, {}, fitting, best, dsps)
        return best[0][1] if best else self.picked(limit, dsps)

    def _fitting(self, limit: int) -> dict[Key, list[Option]]:
        return {key: _cheapest(own, limit) for key, own in self.options.items()}

    def _cheapest(
        self,
        used: int,
        chosen: dict[Key, Order],
        allowed: dict[Key, list[Option]],
        best: list[tuple[int, dict[Key, Order]]],
        dsps: int,
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
            if least > dsps or (best and least >= best[0][0]):
                return
            narrowed = self._narrowed(node, option, allowed) if self.needed else allowed
            chosen[node.key] = option.order
            self._cheapest(used + option.dsps, chosen, narrowed, best, dsps)
            del chosen[node.key]

    def _fastest(
        self,
        used: int,
        times: dict[Key, _Times],
        allowed: dict[Key, list[Option]],
        best: list[tuple[int, dict[Key, Order]]],
        dsps: int,
    ) -> None:
        left = [allowed[node.key] for node in self.order[len(times) :]]
        if not all(left):
            return
        if not left:
            chosen = {key: one.option.order for key, one in times.items()}
            if self._all_join(chosen):
                best[:] = [(max(one.whole for one in times.values()), chosen)]
            return
        rest = used + sum(own[0].dsps for own in left[1:])
        node = self.order[len(times)]
        tried = [self._times(node, one, times) for one in left[0] if rest + one.dsps <= dsps]
        for one in sorted(tried, key=lambda one: (one.whole, one.option.dsps)):
            self.left -= 1
            if self.left < 0 or (best and one.whole >= best[0][0]):
                return
            narrowed = self._narrowed(node, one.option, allowed)
            now = {**times, node.key: one}
            self._fastest(used + one.option.dsps, now, narrowed, best, dsps)

    def _times(self, node: Node, option: Option, times: Mapping[Key, _Times]) -> _Times:
        tail, begun = 0, 0
        for reader, at in self.readers[node.key]:
            own = times[reader]
            tail = max(tail, own.option.cycles - own.option.reads[at] + own.tail)
            begun = max(begun, own.whole)
        return _Times(option, tail, max(option.cycles + tail, option.first + begun))

    def _narrowed(
        self, node: Node, option: Option, allowed: dict[Key, list[Option]]
    ) -> dict[Key, list[Option]]:
        """Return the remaining orders of the nests that `node` reads."""
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
        """Return whether all streams join, with loops split as streams before them have it."""
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
    """Return for each kind the order with the fewest DSPs, in the order of the kinds."""
    kinds: dict[object, Option] = {}
    for one in options:
        if one.cycles <= limit and (one.kind not in kinds or one.dsps < kinds[one.kind].dsps):
            kinds[one.kind] = one
    return sorted(kinds.values(), key=lambda one: one.dsps)
