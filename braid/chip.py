"""From a model to the instruction stream of a chip with several units."""

from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from braid.lowering.npu.build_stream import BuiltStream, SubgraphOptions, build_stream
from braid.passes.infrastructure.crashes import run_reproducibly
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.split.split_ops import SplitOpsPass
from braid.read_source import ModelSource, Shapes, read_source
from braid.support.errors import BraidError
from braid.support.object_cache import default_cache
from braid.targets.machines.load import load_target
from braid.targets.machines.target import BackendDescription
from braid.universe import make_context

CHIP_PIPELINE = "chip"
TILES = 3
"""An op uses at most one part in so many of the memory: others are loaded and stored meanwhile."""


def chip_of(target: str) -> BackendDescription | None:
    """The backend of a target that is programmed by instructions, None for other targets."""
    backend = load_target(target).backends[0]
    return backend if backend.issue is not None and backend.memories else None


def compile_stream(
    source: ModelSource,
    *,
    target: str = "npu-small",
    shapes: Shapes | None = None,
    jobs: int = 1,
    search_seconds: float = 1.0,
) -> BuiltStream:
    """Compile `@main` of a model to the instruction stream of a chip, subgraph by subgraph.

    Ops that do not fit are split. The order of each subgraph is searched for `search_seconds` at
    most, by `jobs` processes; one that was compiled before is taken from braid's cache.

    Raises:
        BraidError: the model cannot be read or has control flow, or `target` is no chip.
        InfeasibleError: an op cannot be split so that it fits.

    """
    backend = chip_of(target)
    if backend is None:
        raise BraidError(f"target '{target}' is not programmed by instructions")
    context = make_context()

    def read() -> ModuleOp:
        return read_source(context, source, shapes=shapes).module

    module = read()
    memory = backend.memories[0].bytes // TILES
    passes = [
        replace(pass_, target=target, memory=memory, follow_readers=True)
        if isinstance(pass_, SplitOpsPass)
        else pass_
        for pass_ in parse_pipeline(CHIP_PIPELINE)
    ]
    run_reproducibly(context, module, passes, read)
    options = SubgraphOptions(search_seconds=search_seconds)
    built = build_stream(_main(module), backend, default_cache(), options, jobs=jobs)
    return replace(built, stream=replace(built.stream, target=load_target(target).name))


def _main(module: ModuleOp) -> Block:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main":
            return op.body.block
    raise BraidError("the model has no function 'main'")
