"""`braid explain`: what was decided about a model, and why."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.tools.commands.options import ShapeOption, SourceArgument, TargetOption, parse_shapes

if TYPE_CHECKING:
    from rich.console import Console

    from braid.tools.explain.views import Table, View


def explain(
    model: SourceArgument,
    layouts: Annotated[
        bool, typer.Option("--layouts", help="List the layouts, and the next best choices.")
    ] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="List the tensors that are live at the peak.")
    ] = False,
    memory_budget: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Compare with the plan that keeps to it: 512MiB."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Weigh ops by this profile, of braid run --profile."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it all on one page.")
    ] = None,
    shape: ShapeOption = None,
    target: TargetOption = "host",
) -> None:
    """Explain the decisions of the default pipeline about a model.

    Without options, a line per decision: its cost, a lower bound that nothing could beat, and
    the gap. The page of --html needs no network.
    """
    from rich.console import Console
    from xdsl.dialects.builtin import ModuleOp

    from braid.sources import read_source
    from braid.tools.explain.walk import plan_memory, walk_through
    from braid.universe import make_context

    context = make_context()

    def read() -> ModuleOp:
        return read_source(context, model, shapes=parse_shapes(shape)).module

    wants_plan = memory or memory_budget is not None or html is not None
    with Console(stderr=True).status(f"compiling {model.name}"):
        walk = walk_through(context, read(), target=target, profile=profile)
        plan = (
            plan_memory(context, read, target=target, profile=profile, budget=memory_budget)
            if wants_plan
            else None
        )
    if html is not None and plan is not None:
        _write_page(html, model.name, (walk.graph, walk.layout_view, plan.view()))
    console = Console()
    if layouts:
        print(walk.layouts.summary)
        for table in (walk.layouts.table(), walk.layouts.reorders()):
            _print_table(console, table)
    if plan is not None and (memory or memory_budget is not None):
        print(plan.summary)
        for title, table in plan.tables():
            print(title)
            _print_table(console, table)
    elif not layouts and html is None:
        for remark in walk.remarks:
            print(f"{remark.pass_name}: {remark.message}")


def _write_page(path: Path, name: str, views: "tuple[View, ...]") -> None:
    from braid.runtime.atomic_file import atomic_file
    from braid.tools.explain.render import render
    from braid.tools.explain.views import Page

    with atomic_file(path) as file:
        file.write(render(Page(f"braid explain {name}", views)).encode())


def _print_table(console: "Console", table: "Table") -> None:
    from rich.table import Table as RichTable

    shown = RichTable(*table.columns)
    for row in table.rows:
        shown.add_row(*row)
    if table.rows:
        console.print(shown)
