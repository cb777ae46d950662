"""Open the resources that a server needs before it answers: the only queue of this user, and a
socket."""

import fcntl
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from braid.support.cache_files import own_cache_directory
from braid.support.errors import BraidError
from braid.support.private_files import DIRECTORY_MODE, open_private, private_directory
from braid.tools.service.logins import Logins
from braid.tools.service.service_state import Limits, Service
from braid.tools.service.storage import TaskQueue, Tokens
from braid.tools.service.task_runner import TaskRunner
from braid.tools.service.usage import Usage

_FOLDER = "service"
_ALIVE = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}
"""Seconds until an idle connection is probed, between probes, how many; milliseconds for what was
sent."""


@contextmanager
def open_service(
    tokens: Tokens, limits: Limits, workers: int, usage: Usage, logins: Logins
) -> Generator[Service]:
    """Yield the service on this user's queue, which no other server works off meanwhile.

    Raises:
        BraidError: another server does, or its directory cannot be written.

    """
    directory = own_cache_directory() / _FOLDER
    database = Path(tokens.engine.url.database or "")
    beside = database.with_name(f"{database.name}.serve")  # not with the models: caches may differ
    try:
        private_directory(directory)
        directory.chmod(DIRECTORY_MODE)  # made by an older version, which let other users read it
        lock = open_private(beside)
    except OSError as error:
        raise BraidError(f"cannot write to '{error.filename}': {error.strerror}") from error
    with os.fdopen(lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BraidError(
                f"another server works off the queue in '{database}'",
                hint="set BRAID_CACHE_DIR to another directory for a second one, and BRAID_RECORDS "
                "to another database if it is set",
            ) from None
        queue = TaskQueue(tokens.engine)
        runner = TaskRunner(queue, directory, workers, usage)
        yield Service(queue, tokens, runner, limits, logins)


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Yield a socket at an address. Raises BraidError where there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BraidError(
            f"cannot listen at {host}:{port}: {error.strerror or error}",
            hint="--port 0 takes one that is free",
        ) from error
    with found:  # every connection inherits these options: one whose peer is gone ends
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _ALIVE.items():
            found.setsockopt(socket.IPPROTO_TCP, option, value)
        yield found
