"""Answers what is asked of streams, in a process of its own."""

from braid.lowering.npu.measured_stream import answer
from braid.support.worker_process import serve

if __name__ == "__main__":
    serve(answer)
