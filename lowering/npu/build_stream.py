"""Streams from objects of subgraphs, each compiled once for all time."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block

from braid.lowering.host.codegen.workers import ask_workers
from braid.lowering.npu.compile_subgraph import SubgraphSource, compile_subgraph
from braid.lowering.npu.cut_subgraphs import Cut
from braid.lowering.npu.link import link
from braid.lowering.npu.lower_block import lowered_block
from braid.lowering.npu.stream_program import StreamProgram, stream_program, with_addresses
from braid.passes.order.subgraphs import pieces_of
from braid.support.object_cache import Kind, ObjectCache
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Stream
from braid.targets.simulator.stream_object import StreamObject

_WORKER = "braid.lowering.npu.subgraph_worker"


@dataclass(frozen=True)
class SubgraphOptions:
    """The options by which `search-order` cuts subgraphs, and the seconds of search for each."""

    key_nodes_per_subgraph: int = 1
    min_nodes: int = 2
    search_seconds: float = 0.0


@dataclass(frozen=True)
class BuiltStream:
    """A linked stream of `subgraphs` objects; this many were `compiled` for it.

    The others were the same as one of these, or came from the cache. If `homeless` buffers do not
    fit in one piece, it can be simulated, but not run.
    """

    program: StreamProgram
    subgraphs: int
    compiled: int

    @property
    def stream(self) -> Stream:
        """The stream alone."""
        return self.program.stream

    @property
    def homeless(self) -> int:
        """Buffers that do not fit in one piece."""
        return self.program.homeless

    def __str__(self) -> str:
        return (
            f"{self.subgraphs} subgraphs: {self.compiled} compiled, "
            f"{self.subgraphs - self.compiled} reused"
        )


def build_stream(
    block: Block,
    backend: BackendDescription,
    cache: ObjectCache,
    options: SubgraphOptions = SubgraphOptions(),
    *,
    jobs: int = 1,
) -> BuiltStream:
    """Return the stream of `block`, its subgraphs compiled one by one by `jobs` processes.

    Values between adjacent subgraphs stay on the chip. In contrast to a block that is
    lowered as a whole, no op of a subgraph is issued before the last op of the previous one, and
    each of them loads the inputs and weights that several of them read. Raises as
    `lower_to_instructions` does, and BraidError for a chip without units that load and store.
    """
    capacity = backend.memories[0].bytes if backend.memories else 0
    made: list[BuiltStream] = []

    def lower(chip: BackendDescription) -> StreamProgram:
        made.append(_lowered(block, chip, capacity, cache, options, jobs))
        return made[-1].program

    program = with_addresses(backend, lower)
    return next(built for built in made if built.program is program)


def _lowered(
    block: Block,
    backend: BackendDescription,
    capacity: int,
    cache: ObjectCache,
    options: SubgraphOptions,
    jobs: int,
) -> BuiltStream:
    """Return the stream, with addresses on a chip with `capacity` bytes."""
    graph, chip, transfers = lowered_block(block, backend)
    pieces = pieces_of(graph.graph, options.key_nodes_per_subgraph, options.min_nodes)
    cut = Cut(graph, chip, backend, pieces)
    sources = [cut.source(piece, options.search_seconds) for piece in range(len(pieces))]
    objects, compiled = _build(sources, cache, jobs)
    placed = ((part, cut.placement(piece)) for piece, part in enumerate(objects))
    program = stream_program(link(placed, backend, transfers), graph, chip, capacity)
    return BuiltStream(program, len(pieces), compiled)


def _build(
    sources: Sequence[SubgraphSource], cache: ObjectCache, jobs: int
) -> tuple[list[StreamObject], int]:
    """Return the objects of all sources, and how many were compiled."""
    keys = [source.key for source in sources]
    found = {key: part for key in dict.fromkeys(keys) if (part := _cached(key, cache))}
    missing = {key: source for key, source in zip(keys, sources, strict=True) if key not in found}
    for key, part in zip(missing, _compile(list(missing.values()), jobs), strict=True):
        cache.put(Kind.STREAM, key, part.to_bytes())
        found[key] = part
    return [found[key] for key in keys], len(missing)


def _compile(sources: Sequence[SubgraphSource], jobs: int) -> Sequence[StreamObject]:
    """Return the objects in the order of `sources`; processes pay only where orders are
    searched.
    """
    jobs = min(jobs, sum(source.search_seconds > 0 for source in sources))
    if jobs < 2:
        return [compile_subgraph(source) for source in sources]
    labels = [f"subgraph {number}" for number in range(len(sources))]
    amounts = [len(source.problem) for source in sources]
    return ask_workers(_WORKER, labels, sources, jobs, amounts)


def _cached(key: str, cache: ObjectCache) -> StreamObject | None:
    data = cache.get(Kind.STREAM, key)
    try:
        return None if data is None else StreamObject.from_bytes(data)
    except ValueError:
        return None
