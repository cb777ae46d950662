"""`braid tune --server`: a task of a server, followed from here."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.support.errors import BraidError
from braid.tools.terminal.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.client import Client

_LONGEST = 1000
"""Characters of an answer that a server takes."""


def tune_on_server(
    model: Path,
    url: str,
    token: str | None,
    options: Mapping[str, Any],
    output: Path | None,
    say: "Callable[[str], None]",
) -> Answer:
    """Submit a model, print the events, forward the user's orders, and keep the artifact.

    An interrupt cancels the task.

    Raises:
        BraidError: the server cannot be had, refuses the task, or the task fails.

    """
    from braid.client import Client
    from braid.tools.terminal.outputs import check_outputs, write_files

    check_outputs(output)
    client = Client(url, token)
    task = client.submit(model, **options)
    try:
        for event in client.events(task):
            if event.kind == "line":
                say(event.data["text"])
            elif event.kind == "step":
                say(f"{event.data['step']} …")
            elif event.kind == "report" and event.data.get("report"):
                say(event.data["report"])
            elif event.kind == "asks" and event.data["asks"]:
                _answer(client, task)
        ended = client.wait(task)
    except KeyboardInterrupt:
        client.cancel(task)
        raise
    if output is not None:
        write_files({output: client.artifact(task)})
    return Answer({"model": str(model), "task": ended})


def _answer(client: "Client", task: str) -> None:
    """Forward the user's order; a late one, as after ten minutes, is ignored."""
    try:
        client.order(task, order_of(sys.stdin.readline()))
    except BraidError as error:
        print(f"  {error.message}", flush=True)


def order_of(line: str) -> str:
    """Return a line as servers take it, of printable ASCII.

    The search reports other invalid lines. An empty line goes on, and the end of the input
    ends the search, as without a server.
    """
    if not line:
        return "quit"
    words = " ".join(line.split())
    return "".join(c if " " <= c <= "~" else "?" for c in words)[:_LONGEST] or "go"
