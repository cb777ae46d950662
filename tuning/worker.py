"""A process that times kernels: `python -m braid.tuning.worker`.

A kernel that is wrong ends only this process.
"""

from braid.support.worker_process import serve
from braid.tuning.timing import time_kernel

if __name__ == "__main__":
    serve(time_kernel)
