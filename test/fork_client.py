"""Runs a tool by `fork_server.py`, and exits as it does: python fork_client.py SOCKET MODULE ARG...

Imports little, since its start is what a test waits for.
"""

import marshal
import os
import socket
import sys


def main() -> int:
    path, *words = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            socket.send_fds(connection, [b" "], [0, 1, 2])
            # pathlib would take longer to import than the rest.
            directory = os.getcwd()  # noqa: PTH109
            connection.sendall(marshal.dumps((words, directory, dict(os.environb))))
            answer = connection.recv(64)
        except OSError as error:
            answer = b""
            print(error, file=sys.stderr)
    if not answer:
        print("the server of tools has ended: what it says above is why", file=sys.stderr)
        return 1
    status = marshal.loads(answer)
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
