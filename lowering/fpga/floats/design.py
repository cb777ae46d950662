"""The functions of a design: each nest with what it reads and writes, joined by streams."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from braid.lowering.fpga.convert.values import Array as Numbers
from braid.lowering.fpga.floats.feeds import Feed, feed_of
from braid.lowering.fpga.floats.nodes import Graph, Key, Node, Read
from braid.lowering.fpga.floats.orders import Order
from braid.lowering.fpga.floats.statements import Body, Operand, Where
from braid.solvers.hls.nests import Affine, Array, Condition, Design, Loop, Process, Stream
from braid.solvers.hls.schedule import Operators, schedule

BITS = 32


@dataclass
class FunctionPort:
    """Storage that a function reads or writes: its shape, and how often each dim is partitioned.

    A stream has a shape of lanes. `numbers` are those of a known tensor.
    """

    name: str
    shape: tuple[int, ...]
    is_stream: bool = False
    depth: int = 0
    factors: list[int] = field(default_factory=list[int])
    numbers: Numbers | None = None

    def partitioned(self, index: Sequence[Affine], unrolled: Sequence[Loop]) -> None:
        """Partition arrays so that the elements that an iteration uses are in different banks."""
        trips = {loop.name: loop.trips for loop in unrolled}
        if not self.factors:
            self.factors = [1] * len(self.shape)
        for at, one in enumerate(index):
            own = 1
            for name in one.variables & trips.keys():
                own *= trips[name]
            self.factors[at] = max(self.factors[at], min(own, self.shape[at]))


@dataclass
class Function:
    """A function of the text: `ports` are its parameters, `local` its own arrays."""

    name: str
    body: Body
    ports: list[FunctionPort] = field(default_factory=list[FunctionPort])
    local: list[FunctionPort] = field(default_factory=list[FunctionPort])


@dataclass
class FloatDesign:
    """Functions in their order; `inputs` has (argument, its port), `results` those of results."""

    name: str
    functions: list[Function]
    inputs: list[tuple[int, FunctionPort]]
    results: list[FunctionPort]
    between: list[FunctionPort]

    def nests(self) -> Design:
        """Return the design as the estimator sees it."""
        outer = [port for _, port in self.inputs] + self.results
        arrays = {port.name: _array(port, True) for port in outer}
        streams: dict[str, Stream] = {}
        for port in self.between:
            if port.is_stream:
                streams[port.name] = Stream(port.name, port.shape, BITS, port.depth)
            else:
                arrays[port.name] = _array(port, False)
        for function in self.functions:
            arrays |= {port.name: _array(port, False) for port in function.local}
        processes = tuple(
            Process(one.name, (one.body.nest(f"{one.name}_loop"),)) for one in self.functions
        )
        return Design(self.name, processes, arrays, streams)


def _array(port: FunctionPort, is_outer: bool) -> Array:
    factors = port.factors or [1] * len(port.shape)
    kinds = tuple(("cyclic" if one > 1 else "none", one) for one in factors)
    return Array(port.name, port.shape, BITS, kinds, is_outer)


def design_of_graph(
    graph: Graph,
    orders: Mapping[Key, Order],
    name: str,
    operators: Operators,
) -> FloatDesign:
    """Return the design with these orders; what goes from nest to nest in one order is streamed."""
    return _Maker(graph, dict(orders), operators).made(name)


class _Maker:
    def __init__(
        self,
        graph: Graph,
        orders: dict[Key, Order],
        operators: Operators,
    ) -> None:
        self.graph, self.orders, self.operators = graph, orders, operators
        self.arguments = {key: at for at, key in enumerate(graph.inputs)}
        self.nodes = {node.key: node for node in graph.nodes}
        self.inputs: list[tuple[int, FunctionPort]] = []
        self.between: list[FunctionPort] = []
        self.edges: dict[tuple[Key, int], tuple[FunctionPort, Feed | None]] = {}
        self.written: dict[Key, list[FunctionPort]] = {node.key: [] for node in graph.nodes}

    def made(self, name: str) -> FloatDesign:
        for node in self.graph.nodes:
            self._split_loops(node)
            for at, read in enumerate(node.reads):
                self._connect(node, at, read)
        results = [
            FunctionPort(f"y{at}", self.nodes[key].shape or (1,))
            for at, key in enumerate(self.graph.results)
        ]
        for key, port in zip(self.graph.results, results, strict=True):
            self.written[key].append(port)
        functions = [self._function(at, node) for at, node in enumerate(self.graph.nodes)]
        design = FloatDesign(name, functions, self.inputs, results, self.between)
        arrays = design.nests().arrays
        for function in functions:
            plan = schedule(function.body.nest(function.name), arrays, self.operators)
            function.body.interval = plan.interval
        return design

    def _split_loops(self, node: Node) -> None:
        """Split all loops for streams before any stream says in which iterations it is read."""
        for read in node.reads:
            if read.source in self.nodes:
                given = self.nodes[read.source], self.orders[read.source]
                found = feed_of(given, (node, self.orders[node.key]), read)
                self.orders[node.key] = self.orders[node.key] if found is None else found[0]

    def _connect(self, node: Node, at: int, read: Read) -> None:
        key = node.key, at
        if read.source in self.nodes:
            producer = self.nodes[read.source]
            number = len(self.between)
            given = producer, self.orders[producer.key]
            found = feed_of(given, (node, self.orders[node.key]), read)
            if found is None:
                port, feed = FunctionPort(f"m{number}", producer.shape or (1,)), None
            else:
                _, feed = found
                lanes = given[1].lanes[1]
                port = FunctionPort(f"s{number}", (lanes,), True, _tokens(producer, lanes))
            self.between.append(port)
            self.written[producer.key].append(port)
            self.edges[key] = port, feed
        elif read.source in self.graph.known:
            numbers = self.graph.known[read.source]
            number = list(self.graph.nodes).index(node)
            self.edges[key] = (
                FunctionPort(f"w{number}_{at}", read.shape or (1,), numbers=numbers),
                None,
            )
        else:
            number = self.arguments[read.source]
            uses = sum(one == number for one, _ in self.inputs)
            port = FunctionPort(f"x{number}" + f"_{uses}" * (uses > 0), read.shape or (1,))
            self.inputs.append((number, port))
            self.edges[key] = port, None

    def _function(self, number: int, node: Node) -> Function:
        order = self.orders[node.key]
        made = Function(f"node{number}", Body(order.loops, order.interval))
        arguments: list[Operand] = []
        # Streams are read first, in separate loops.
        feeds = [self.edges[node.key, at] for at in range(len(node.reads))]
        buffers = [_take(made, order, port, feed) for port, feed in feeds]
        for read, (port, feed), buffer in zip(node.reads, feeds, buffers, strict=True):
            arguments.append(_value(made, order, read, port, feed, buffer))
            known = made.local if port.numbers is not None else made.ports
            if port not in known:
                known.append(port)
        value = made.body.scalar(node.body, arguments, Where(order.bounds, order.unrolled))
        _give(made, node, order, value, self.written[node.key])
        made.ports += self.written[node.key]
        return made


def _tokens(node: Node, lanes: int) -> int:
    count = 1
    for extent in node.shape:
        count *= extent
    return max(2, -(-count // lanes))


def _take(
    made: Function, order: Order, port: FunctionPort, feed: Feed | None
) -> FunctionPort | None:
    """Return the buffer of what a stream brings, filled."""
    if feed is None or feed.is_direct:
        return None
    buffer = FunctionPort(f"held_{port.name}", feed.shape)
    made.local.append(buffer)
    unrolled = () if feed.lane is None else (feed.lane,)
    lane = Affine() if feed.lane is None else Affine.of(0, {feed.lane.name: 1})
    is_bound = feed.lane is not None and feed.lane.name != "lane"
    # Reads belong to an iteration as a whole, so the guards are outside of the lanes.
    where = Where((*(order.bounds if is_bound else ()), *feed.guards), unrolled)
    value = made.body.add("read", where, name=port.name, index=(lane,))
    made.body.add("store", where, (value,), name=buffer.name, index=feed.taken)
    buffer.partitioned(feed.taken, unrolled)
    return buffer


def _value(
    made: Function,
    order: Order,
    read: Read,
    port: FunctionPort,
    feed: Feed | None,
    buffer: FunctionPort | None,
) -> Operand:
    where = Where(order.bounds, order.unrolled)
    if feed is not None and buffer is None:
        lane = Affine() if feed.lane is None else Affine.of(0, {feed.lane.name: 1})
        return made.body.add("read", where, name=port.name, index=(lane,))
    if feed is not None and buffer is not None:
        buffer.partitioned(feed.needed, order.unrolled)
        return made.body.add("load", where, name=buffer.name, index=feed.needed)
    values = {f"d{at}": one for at, one in enumerate(order.index)}
    index = [_at(one, values) for one in read.index] or [Affine()]
    port.partitioned(index, order.unrolled)
    guards: list[Condition] = []
    if read.padding is not None:
        for one, extent in zip(index, read.shape, strict=True):
            guards.append(Condition(one, True))
            guards.append(Condition(Affine(extent - 1) + one.scaled(-1), True))
    return made.body.add(
        "load", where, name=port.name, index=index, guards=guards, otherwise=read.padding
    )


def _at(index: Affine, values: Mapping[str, Affine]) -> Affine:
    made = Affine(index.constant)
    for name, factor in index.terms:
        made += values[name].scaled(factor)
    return made


def _give(
    made: Function, node: Node, order: Order, value: Operand, ports: Sequence[FunctionPort]
) -> None:
    """Write the result if it is combined after its last part."""
    where = Where(order.bounds, order.unrolled)
    last: tuple[Condition, ...] = ()
    reductions = [at for at in node.reductions if node.extents[at] > 1]
    if reductions:
        value, last = _combined(made, node, order, value, reductions)
    lane_dim, lanes = order.lanes
    lane = Affine.of(0, {f"d{lane_dim}u": 1}) if lanes > 1 else Affine()
    index = order.index[: node.parallel] or (Affine(),)
    if node.place is not None:
        values = {f"d{at}": one for at, one in enumerate(order.index)}
        index = tuple(_at(one, values) for one in node.place) or (Affine(),)
    for port in ports:
        kind, place = ("write", (lane,)) if port.is_stream else ("store", index)
        if not port.is_stream:
            port.partitioned(index, order.unrolled)
        made.body.add(kind, where, (value,), name=port.name, index=place, guards=last)


def _combined(
    made: Function, node: Node, order: Order, value: Operand, reductions: Sequence[int]
) -> tuple[Operand, tuple[Condition, ...]]:
    where = Where(order.bounds, order.unrolled)
    own = frozenset[str]().union(*(order.index[at].variables for at in reductions))
    outer = [loop.name for loop in order.loops]
    inside = next((i for i, name in enumerate(outer) if name in own), len(outer))
    kept = {*outer[inside:], *(loop.name for loop in order.unrolled)}
    index = [
        Affine.of(one.constant, {name: f for name, f in one.terms if name in kept})
        for one in order.index[: node.parallel]
    ]
    trips = {loop.name: loop.trips for loop in (*order.loops, *order.unrolled)}
    shape = [one.limits(trips)[1] + 1 for one in index]
    places = [at for at, size in enumerate(shape) if size > 1] or [0]
    index = [index[at] for at in places] if index else [Affine()]
    total = FunctionPort(f"t_{made.name}", tuple(shape[at] for at in places) if shape else (1,))
    total.partitioned(index, order.unrolled)
    made.local.append(total)
    firsts = tuple(Condition(order.index[at]) for at in reductions)
    lasts = tuple(Condition(order.index[at] + Affine(1 - node.extents[at])) for at in reductions)
    kind = node.combine or "add"
    start = {"add": 0.0, "mul": 1.0, "maximum": float("-inf"), "minimum": float("inf")}[kind]
    made.body.add("store", where, (start,), name=total.name, index=index, guards=firsts)
    before = made.body.add("load", where, name=total.name, index=index)
    after = made.body.add(kind, where, (before, value))
    made.body.add("store", where, (after,), name=total.name, index=index)
    return after, lasts


def texts_of(design: FloatDesign) -> Iterator[str]:
    """Return the functions, and the top one."""
    for function in design.functions:
        parameters = ", ".join(map(_parameter, function.ports))
        yield f"void {function.name}({parameters}) {{"
        yield from (line for port in function.ports for line in _partition(port))
        for port in function.local:
            yield f"  {_declared(port)}"
            yield from _partition(port)
        yield from (line if line[0] == "#" else "  " + line for line in function.body.text())
        yield "}"
        yield ""
    outer = [port for _, port in design.inputs] + design.results
    yield f'extern "C" void {design.name}({", ".join(map(_parameter, outer))}) {{'
    yield "#pragma HLS DATAFLOW"
    yield from (line for port in outer for line in _partition(port))
    for port in design.between:
        lanes = f"[{port.shape[0]}]"
        yield (
            f"  hls::stream<float> {port.name}{lanes};"
            if port.is_stream
            else (f"  {_declared(replace(port, numbers=None))}")
        )
        if port.is_stream:
            yield f"#pragma HLS STREAM variable={port.name} depth={port.depth}"
        yield from () if port.is_stream else _partition(port)
    for function in design.functions:
        yield f"  {function.name}({', '.join(port.name for port in function.ports)});"
    yield "}"


def _shape(port: FunctionPort) -> str:
    return "".join(f"[{size}]" for size in port.shape)


def _parameter(port: FunctionPort) -> str:
    if port.is_stream:
        return f"hls::stream<float> {port.name}[{port.shape[0]}]"
    return f"float {port.name}{_shape(port)}"


def _declared(port: FunctionPort) -> str:
    if port.numbers is None:
        return f"float {port.name}{_shape(port)};"
    numbers = ", ".join(f"{float(one)!r}f" for one in port.numbers.ravel())
    return f"static const float {port.name}{_shape(port)} = {{{numbers}}};"


def _partition(port: FunctionPort) -> list[str]:
    return [
        f"#pragma HLS ARRAY_PARTITION variable={port.name} cyclic dim={at + 1} factor={factor}"
        for at, factor in enumerate(port.factors)
        if factor > 1
    ]
