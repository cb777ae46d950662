"""A process that tries ops and models on devices: `python -m braid.tuning.probe_worker`.

A crash, a hang, or an exhausted memory ends only this process.
"""

import os
import resource

from braid.support.worker_process import serve
from braid.tuning.probe_runs import run_trial

if __name__ == "__main__":
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(run_trial)
