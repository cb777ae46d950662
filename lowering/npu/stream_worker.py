"""Answers requests about streams, in a separate process."""

from braid.lowering.npu.measured_stream import answer
from braid.support.worker_process import serve

if __name__ == "__main__":
    serve(answer)
