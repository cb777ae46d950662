"""A process that compiles subgraphs: `python -m` this module, see `build_stream`."""

from braid.lowering.npu.compile_subgraph import compile_subgraph
from braid.support.worker_pool import IDLE_SECONDS
from braid.support.worker_process import serve

if __name__ == "__main__":
    serve(compile_subgraph, idle_seconds=IDLE_SECONDS)
