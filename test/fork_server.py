"""Runs tools for lit in forks of one process, which has imported them.

A tool takes longer to import its modules than to do what a test asks of it, and lit runs hundreds.
A fork has its own arguments, directory, environment and standard files, and exits as the tool does;
it shares with others what importing and reading a module leave behind. That tools start without all
this is shown by the tests that run them by their names: `test/unit/tools` and
`test/unit/test_packaging.py`.

    python fork_server.py DESCRIPTOR MODULE... -- MODULE...

DESCRIPTOR is a socket that `fork_client.py` connects to; the first modules have a `main()` each,
the others are imported with them. Ends when its standard input does.
"""

import gc
import importlib
import marshal
import os
import select
import signal
import socket
import sys


def serve(listener: socket.socket) -> list[str]:
    """Answer until standard input ends; returns in a fork that has a tool to run, with its words.

    A client sends its three standard files, then (words, directory, environment) by `marshal`.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks leave nothing to wait for
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if listener not in ready:
            sys.exit()
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                return _run_in_fork(connection)


def _run_in_fork(connection: socket.socket) -> list[str]:
    """Answer with the status of another fork, in which this returns: one that crashes cannot."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as stream:
        words, directory, environment = marshal.load(stream)
    if (child := os.fork()) != 0:
        for file in (0, 1, 2, *files):
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.sendall(marshal.dumps(os.waitstatus_to_exitcode(status)))
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # As Python makes them at its start, of other kinds of files than the server's may be.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(directory)
    os.environb.clear()
    os.environb.update(environment)
    return words


def main() -> int:
    descriptor, *modules = sys.argv[1:]
    tools = modules[: modules.index("--")]
    for module in modules:
        if module != "--":
            importlib.import_module(module)
    gc.freeze()  # else the collector writes to the pages that forks share
    sys.argv = serve(socket.socket(fileno=int(descriptor)))
    assert sys.argv[0] in tools
    return sys.modules[sys.argv[0]].main()


if __name__ == "__main__":
    sys.exit(main())
