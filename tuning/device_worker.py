"""A process that runs kernels on a device: `python -m braid.tuning.device_worker`.

A crash, a hang, or a persistent error of a driver ends only this process.
"""

from braid.support.worker_process import serve
from braid.tuning.device_runs import run_on_device

if __name__ == "__main__":
    serve(run_on_device)
