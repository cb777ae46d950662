"""A child that was forked while another thread compiled says so instead of waiting for ever."""

import subprocess
import sys

_PROGRAM = """
import os, sys, threading
import braid
from braid.support.errors import BraidError
from braid.support.forks import compiling

inside, leave = threading.Event(), threading.Event()

def compile():
    with compiling():
        inside.set()
        leave.wait()

def in_child():
    child = os.fork()
    if child == 0:
        status = 1
        try:
            braid.run_passes("no module", "cse")
        except BraidError as error:
            status = 2 if "forked while another thread compiled" in error.message else 3
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

thread = threading.Thread(target=compile)
assert in_child() == 3
with compiling():  # of this thread, which is in the child too
    assert in_child() == 3
thread.start()
inside.wait()
assert in_child() == 2
leave.set()
thread.join()
assert in_child() == 3
"""


def test_compiling_after_a_fork_during_another_threads() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _PROGRAM]
    subprocess.run(command, check=True, timeout=60)
