"""A process that runs and times kernels: `python -m braid.tuning.worker`.

A kernel that is wrong ends only this process.
"""

from braid.support.worker_process import serve
from braid.tuning.kernel_runs import RunRequest, run_kernel
from braid.tuning.timing import TimingRequest, time_kernel


def answer(request: TimingRequest | RunRequest | None) -> object:
    """Return the seconds of one run, or its results; None to who only asks whether this is
    there.
    """
    if request is None:
        return None
    return run_kernel(request) if isinstance(request, RunRequest) else time_kernel(request)


if __name__ == "__main__":
    serve(answer)
