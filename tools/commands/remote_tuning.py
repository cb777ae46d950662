"""`braid tune --server`: a task of a server, followed from here."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braid.support.errors import BraidError


def tune_on_server(
    model: Path, url: str, token: str | None, options: Mapping[str, Any], output: Path | None
) -> None:
    """Submit a model, print what happens, pass on what the user says, and keep the artifact.

    An interrupt cancels the task.

    Raises:
        BraidError: the server cannot be had, refuses the task, or the task fails.

    """
    from braid.client import Client
    from braid.tools.outputs import check_outputs, write_files

    check_outputs(output)
    client = Client(url, token)
    task = client.submit(model, **options)
    try:
        for event in client.events(task):
            if event.kind == "line":
                print(event.data["text"], flush=True)
            elif event.kind == "step":
                print(f"{event.data['step']} …", flush=True)
            elif event.kind == "report" and event.data.get("report"):
                print(event.data["report"], flush=True)
            elif event.kind == "asks" and event.data["asks"]:
                client.order(task, sys.stdin.readline().strip() or "stop")
        ended = client.wait(task)
    except KeyboardInterrupt:
        client.cancel(task)
        raise
    if ended["state"] != "done":
        raise BraidError(f"the task is {ended['state']}: {ended.get('error') or 'by its user'}")
    if output is not None:
        write_files({output: client.artifact(task)})
