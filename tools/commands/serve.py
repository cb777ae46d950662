"""`braid serve`: tunes and compiles models for others, over HTTP."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from braid.support.errors import BraidError

if TYPE_CHECKING:
    from braid.tools.service.storage import Tokens

serve = typer.Typer(
    name="serve",
    help="Tune and compile models for others, over HTTP.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
token = typer.Typer(name="token", help="Say who may use the service.", rich_markup_mode=None)
serve.add_typer(token)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the token is called.")]


@serve.callback()
def run_server(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0 for one that is free.")
    ] = 8017,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Tasks at a time; more than one disturb each other's times."
        ),
    ] = 1,
    queue_limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tasks that may wait; further are refused.")
    ] = 256,
    upload_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="Largest model or inputs, such as 512MiB.")
    ] = "512MiB",
    run_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Longest run of an artifact.")
    ] = 60.0,
) -> None:
    """Tune and compile models for others, over HTTP.

    Without a token yet, one is made and shown once. The queue is kept with the records of this
    user, and goes on where a server before has ended. The page is at the address that is printed,
    the description of all requests at /openapi.json. Needs the extra serve.
    """
    if context.invoked_subcommand is None:
        _serve(host, port, workers, queue_limit, upload_limit, run_seconds)


def _serve(
    host: str, port: int, workers: int, queue_limit: int, upload_limit: str, run_seconds: float
) -> None:
    tokens = _tokens()
    import uvicorn

    from braid.tools.service.app import Limits, make_app
    from braid.tools.service.serving import listening, open_service

    limits = Limits(_size(upload_limit), queue_limit, run_seconds)
    with open_service(tokens, limits, workers) as service, listening(host, port) as socket:
        if not tokens.names():
            print(f"token: {tokens.add('first')}")
        address, bound = socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        print(f"braid serves at http://{shown}:{bound}/", flush=True)
        config = uvicorn.Config(make_app(service), log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[socket])


def _size(text: str) -> int:
    from braid.support.byte_sizes import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise BraidError(
            f"--upload-limit is '{text}', expected bytes, or a size such as 512MiB"
        ) from error


@token.command()
def add(name: NameArgument) -> None:
    """Make a token, which is shown this once."""
    print(_tokens().add(name))


@token.command("list")
def list_tokens() -> None:
    """List the names of tokens, and when they were made."""
    for name, created in _tokens().names():
        print(f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(created))}  {name}")


@token.command()
def remove(name: NameArgument) -> None:
    """Remove a token: nobody gets in with it any more."""
    _tokens().remove(name)


def _tokens() -> "Tokens":
    try:
        from braid.tools.service.storage import Tokens, open_database
    except ImportError as error:
        raise BraidError(
            f"the service needs a package that is not installed: {error}",
            hint="pip install 'braid[serve]'",
        ) from error
    return Tokens(open_database())
