"""A process that runs whole models in turns: `python -m braid.tuning.model_worker`."""

from braid.support.worker_process import serve
from braid.tuning.model_runs import Programs

if __name__ == "__main__":
    serve(Programs().answer)
