"""`braid serve`: tunes and compiles models for others, over HTTP."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.tools.commands.option_groups import grouped
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup
from braid.tools.terminal.interrupts import INTERRUPTED
from braid.tools.terminal.reporter import reporter

if TYPE_CHECKING:
    from braid.tools.service.storage import Tokens

serve = CommandGroup(
    name="serve",
    help="Tune and compile models for others, over HTTP.",
    invoke_without_command=True,
)
token = CommandGroup(name="token", help="Say who may use the service.")
serve.add_typer(token)

_MOST_CONNECTIONS = 512
_LARGEST_HEAD = 1 << 18
"""Bytes of the head of a request, including the options of a task."""
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.")]


@dataclass(frozen=True)
class AddressOptions:
    """Options for the address and the host names of the server."""

    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0 for one that is free.")
    ] = 8017
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A further name of the server, besides localhost and this machine's, such as a "
            "proxy's. May be given several times.",
        ),
    ] = None
    client_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Longest wait for the head of a request, for the next 1 KiB per second of its "
            "body, and for the next part of an answer to be read.",
        ),
    ] = 30.0
    session_minutes: Annotated[
        float,
        typer.Option(
            metavar="MINUTES", min=0.01, help="A browser's session ends so long after its last use."
        ),
    ] = 30.0


@dataclass(frozen=True)
class LimitOptions:
    """Options for the resource limits of tasks, runs and requests."""

    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Tasks at a time; more than one disturb each other's times."
        ),
    ] = 1
    queue_limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tasks that may wait; further are refused.")
    ] = 256
    token_limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tasks of one token that may wait or run.")
    ] = 64
    upload_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="Largest model or inputs, such as 512MiB.")
    ] = "512MiB"
    run_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Longest run of an artifact.")
    ] = 60.0
    run_memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most memory of a run; half of the machine's."),
    ] = None
    task_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Longest task, all its steps.")
    ] = 86400.0
    task_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Most memory of a task's processes; half of the machine's."
        ),
    ] = None
    output_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="Most that a task or a run may write.")
    ] = "4GiB"


@serve.callback()
@grouped
def run_server(context: typer.Context, where: AddressOptions, most: LimitOptions) -> None:
    """Tune and compile models for others, over HTTP.

    Without a token yet, one is made and shown once. The queue is kept with the records of this
    user, and goes on where a server before has ended. The page is at the address that is printed,
    the description of all requests at /openapi.json. Needs the extra serve.
    """
    if context.invoked_subcommand is None:
        _serve(where, most)


def _serve(where: AddressOptions, most: LimitOptions) -> None:
    tokens = _tokens()
    import uvicorn

    from braid.tools.service.app import make_app
    from braid.tools.service.logins import Logins
    from braid.tools.service.patient_protocol import patient_for
    from braid.tools.service.service_state import Limits
    from braid.tools.service.serving import listening, open_service
    from braid.tools.service.usage import Usage, half_of_memory

    def usage(seconds: float, option: str, memory: str | None) -> Usage:
        most_memory = half_of_memory() if memory is None else _size(option, memory)
        return Usage(seconds, most_memory, _size("--output-limit", most.output_limit))

    run = usage(most.run_seconds, "--run-memory", most.run_memory)
    task = usage(most.task_seconds, "--task-memory", most.task_memory)
    limits = Limits(
        _size("--upload-limit", most.upload_limit), most.queue_limit, most.token_limit, run
    )
    logins = Logins(idle=60 * where.session_minutes)
    opened = open_service(tokens, limits, most.workers, task, logins)
    with opened as service, listening(where.host, where.port) as socket:
        first = None if tokens.names() else tokens.add("first")
        address, bound = socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        _announce(f"http://{shown}:{bound}/", first)
        config = uvicorn.Config(
            make_app(service, [where.host, *(where.allow_host or ())]),
            http=patient_for(where.client_seconds),
            ws="none",
            log_level="warning",
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        uvicorn.Server(config).run(sockets=[socket])


def _announce(url: str, first_token: str | None) -> None:
    """Report that the server listens, as text or, since it continues, as a separate document."""
    to = reporter()
    if to.is_json:
        result = {"url": url, "token": first_token}
        to.print_document(result, 0)
        to.said_status = INTERRUPTED  # by which a server ends
        return
    if first_token is not None:
        print(f"token: {first_token}")
    print(f"braid serves at {url}", flush=True)


def _size(option: str, text: str) -> int:
    from braid.support.byte_sizes import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise BraidError(
            f"{option} is '{text}', expected bytes, or a size such as 512MiB"
        ) from error


@token.command()
def add(name: NameArgument) -> Answer:
    """Make a token, which is shown this once."""
    made = _tokens().add(name)
    return Answer({"name": name, "token": made}, lambda: print(made))


@token.command("list")
def list_tokens() -> Answer:
    """List the names of tokens, and when they were made."""
    known = list(_tokens().names())

    def show() -> None:
        for name, created in known:
            print(f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(created))}  {name}")

    return Answer({"tokens": [{"name": name, "created": made} for name, made in known]}, show)


@token.command()
def remove(name: NameArgument) -> Answer:
    """Remove a token: nobody gets in with it any more."""
    _tokens().remove(name)
    return Answer({"name": name})


def _tokens() -> "Tokens":
    try:
        from braid.tools.service.storage import Tokens, open_database
    except ImportError as error:
        raise BraidError(
            f"the service needs a package that is not installed: {error}",
            hint=install_command("serve"),
        ) from error
    return Tokens(open_database())
