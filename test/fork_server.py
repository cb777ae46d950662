"""Runs tools for lit in forks of one process, which has imported them.

A tool takes longer to import its modules than to do what a test asks of it, and lit runs hundreds.
A fork has its own arguments, directory, environment and standard files, and its client exits as the
tool does; it shares with other forks the effects of imports and of reading a module. That tools
start without all this is shown by the tests that run them by their names: `test/unit/tools` and
`test/unit/test_packaging.py`.

    python fork_server.py DESCRIPTOR MODULE... -- MODULE...

DESCRIPTOR is a socket that `fork_client.py` connects to; the first modules have a `main()` each,
the others are imported with them. Ends when its standard input does.
"""

import atexit
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import sys
import threading
import traceback

Clients = dict[int, socket.socket]


def serve(listener: socket.socket) -> list[str]:
    """Answer until standard input ends; returns in a fork that has a tool to run, with its words.

    A client sends its three standard files, then (words, directory, environment) by `marshal`, and
    gets the tool's exit status from here: a fork that crashes could not send it.
    """
    ended, wakes = socket.socketpair()
    for end in (ended, wakes):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    clients: Clients = {}
    while True:
        ready, _, _ = select.select([listener, sys.stdin, ended], [], [])
        if sys.stdin in ready:
            sys.exit()
        if ended in ready:
            ended.recv(4096)
            _answer(clients)
        if listener in ready:
            connection, _ = listener.accept()
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for opened in (listener, ended, wakes, *clients.values()):
                    opened.close()
                return _received(connection)
            clients[child] = connection


def _answer(clients: Clients) -> None:
    """Send the statuses of the forks that have ended."""
    while clients:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with clients.pop(child) as connection:
            try:
                connection.sendall(marshal.dumps(os.waitstatus_to_exitcode(status)))
            except BrokenPipeError:
                continue  # the client was killed


def _received(connection: socket.socket) -> list[str]:
    """Take a client's files, directory and environment; returns its words."""
    with connection, connection.makefile("rb") as stream:
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        words, directory, environment = marshal.load(stream)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # As Python opens them at its start; the server's may be other kinds of files.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(directory)
    os.environb.clear()
    os.environb.update(environment)
    return words


def run_tool(words: list[str]) -> int:
    """Run a tool as `python -m` does; returns its exit status."""
    sys.argv = words
    try:
        return sys.modules[words[0]].main() or 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    return 1


def leave(status: int) -> None:
    """End this process without taking its modules down, which would copy the pages forks share."""
    threading._shutdown()  # waits for threads, as Python does
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except OSError:
            status = 120  # as Python's
    os._exit(status)


def main() -> None:
    descriptor, *modules = sys.argv[1:]
    tools = modules[: modules.index("--")]
    for module in modules:
        if module != "--":
            importlib.import_module(module)
    gc.freeze()  # else the collector writes to the pages that forks share
    words = serve(socket.socket(fileno=int(descriptor)))
    assert words[0] in tools
    leave(run_tool(words))


if __name__ == "__main__":
    main()
