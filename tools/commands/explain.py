"""`braid explain`: what was decided about a model, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.driver.options import CompileOptions
from braid.support.errors import BraidError
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import AtOption, SourceArgument, option_of
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.option_values import parse_at

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from braid.tools.explain.device_view import DeviceExplanation
    from braid.tools.explain.memory_view import MemoryExplanation
    from braid.tools.explain.model_page import ModelPage
    from braid.tools.explain.views import Table, TimelineView
    from braid.tools.explain.walk import Walk
    from braid.tools.explain.why import Story


@dataclass(frozen=True)
class ViewOptions:
    """The options that say which reports are shown, and where."""

    why: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Tell all that is known of one op or tensor."),
    ] = None
    layouts: Annotated[
        bool, typer.Option("--layouts", help="List the layouts, and the next best choices.")
    ] = False
    memory: Annotated[
        bool, typer.Option("--memory", help="List the tensors that are live at the peak.")
    ] = False
    devices: Annotated[
        bool, typer.Option("--devices", help="List devices, clusters and what each takes.")
    ] = False
    circuits: Annotated[
        bool, typer.Option("--circuits", help="List stages and channels of circuits on FPGAs.")
    ] = False
    assembly: Annotated[
        bool,
        typer.Option("--assembly", help="With --html or --why, show the code of kernels, too."),
    ] = False
    measure: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="With --devices, stream N random requests, and time clusters."
        ),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write when clusters run, predicted, as Perfetto's trace events."
        ),
    ] = None
    model_explorer: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the time of each op, as node data of Google's Model Explorer.",
        ),
    ] = None
    memory_budget: Annotated[str | None, option_of("memory_budget")] = None
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it all on one page, in FILE.")
    ] = None

    @property
    def files(self) -> "tuple[Path | None, ...]":
        """Return the files that are written, None for those that nobody wants."""
        return self.html, self.trace, self.model_explorer

    @property
    def lists_memory(self) -> bool:
        """Return whether the plan of memory is listed."""
        return self.memory or self.memory_budget is not None

    @property
    def plans_memory(self) -> bool:
        """Return whether the plan of memory is listed or drawn."""
        return self.lists_memory or self.html is not None

    @property
    def lists_all(self) -> bool:
        """Return whether nothing was asked for by name."""
        asked = (self.layouts, self.lists_memory, self.devices, self.circuits, self.why)
        return not any(asked) and all(file is None for file in self.files)

    @property
    def needs_page(self) -> bool:
        """Return whether all of the page's data is needed, which plans memory too."""
        wanted = self.html, self.why, self.model_explorer
        return self.lists_all or any(each is not None for each in wanted)


Explained = Annotated[
    CompileOptions,
    only(
        *(
            "partition",
            "pin",
            "use_profile",
            "shapes",
            "dims",
            "constants",
            "state",
            "target",
            "cpu",
        ),
        *("emulate", "numerics", "precision"),
    ),
]
"""The options of compilations that bear on decisions."""


@dataclass(frozen=True)
class Section:
    """Lines of text and a table, optionally with a title, about one decision."""

    about: str
    lines: tuple[str, ...]
    title: str = ""
    table: "Table | None" = None


@dataclass(frozen=True)
class _Explained:
    """All that is known of the decisions about a model; circuits where they are asked for."""

    walk: "Walk"
    plan: "MemoryExplanation | None"
    circuits: "tuple[TimelineView, ...]"
    page: "ModelPage | None" = None
    story: "Story | None" = None


@grouped
def explain(
    model: SourceArgument,
    views: ViewOptions,
    options: Explained,
    at: AtOption = None,
) -> Answer:
    """Explain the decisions of the default pipeline about a model.

    Without options, it shows the slowest kernels with the reasons for their choice and the next
    best alternatives, and a line per decision: its cost, a lower bound by the cost model, and the
    gap. With --memory-budget, the plan for it is compared with the one without. The page of --html
    needs no network. Decisions about a model with open dims are made at likely sizes; kernels and
    the plan of memory are those at the sizes of --at.
    """
    from braid.tools.terminal.outputs import check_outputs

    check_outputs(*views.files, model=model)
    sizes = parse_at(at)
    if views.measure is not None and not views.devices:
        raise BraidError("--measure is for --devices")
    if views.assembly and views.html is None and views.why is None:
        raise BraidError("--assembly is for --html and --why")
    if sizes and not (views.plans_memory or views.needs_page):
        raise BraidError("--at is for kernels and the plan of memory, not for what was asked")
    explained = _explained(model, views, options, sizes)
    if views.circuits and not explained.circuits:
        raise BraidError(
            "no part of the model becomes a circuit", hint="give a target with an FPGA (--target)"
        )
    sections = list(_sections(model, explained, views, options))
    data = {
        "model": str(model),
        "remarks": [remark.to_json() for remark in explained.walk.remarks],
        "sections": [asdict(section) for section in sections],
        "files": [str(path) for path in views.files if path is not None],
        "page": None if explained.page is None else explained.page.data,
        "why": None if explained.story is None else explained.story.data(),
    }
    return Answer(data, lambda: _show(sections))


def _explained(
    model: Path, views: ViewOptions, options: CompileOptions, sizes: Mapping[str, int]
) -> _Explained:
    from braid.passes.infrastructure.context import make_context
    from braid.tools.commands.diagnostics import compiling
    from braid.tools.explain.walk import plan_memory, walk_through

    known = make_context()
    read = partial(_read, known, model, options)
    profile = None if options.use_profile is None else Path(options.use_profile)
    with compiling(model):
        if views.needs_page:
            return _with_page(known, model, views, options, sizes)
        walk = walk_through(
            known, read(), profile=profile, partition=options.partition, pin=options.pin
        )
        plan: MemoryExplanation | None = None
        if views.lists_memory:
            bound = partial(_read_at_sizes, known, model, options, sizes)
            plan = plan_memory(known, bound, profile=profile, budget=views.memory_budget)
        made = _circuits(model, options, walk) if views.circuits else ()
    return _Explained(walk, plan, made)


def _with_page(
    known: "Context",
    model: Path,
    views: ViewOptions,
    options: CompileOptions,
    sizes: Mapping[str, int],
) -> _Explained:
    from braid.dialects.braid.names import names_of
    from braid.dialects.braid.sizes import is_open
    from braid.driver.sources.decision_sizes import decision_sizes
    from braid.tools.explain.history import History
    from braid.tools.explain.model_page import Questions, explain_model
    from braid.tools.explain.walk import walk_through
    from braid.tools.explain.why import names_behind, story_of

    profile = None if options.use_profile is None else Path(options.use_profile)
    module = _read(known, model, options)
    names: tuple[str, ...] = ()
    history: History | None = None
    if views.why is not None:
        names = names_behind(views.why, [n for op in module.walk() for n in names_of(op)])
        history = History(names)
    bound = partial(_read_at_sizes, known, model, options, sizes)
    bound_to = {**decision_sizes(known, module, sizes), **sizes}
    asked = Questions(
        profile, options.partition, options.pin, views.memory_budget, bound_to, views.assembly
    )
    made: list[TimelineView] = []

    def circuits(walk: "Walk") -> "Sequence[TimelineView]":
        if views.html is not None or views.circuits:
            made.extend(_circuits(model, options, walk))
        return made

    page = explain_model(known, bound, model.name, asked, circuits, history)
    walk = page.walk
    if is_open(module):
        # Decisions about sizes are reported for the module that has them.
        walk = walk_through(
            known,
            module,
            profile=profile,
            partition=options.partition,
            pin=options.pin,
            likely=bound_to,
        )
        page = page.with_sizes(walk.sizes)
    story = (
        None if history is None or views.why is None else story_of(views.why, names, page, history)
    )
    return _Explained(walk, page.memory, tuple(made), page, story)


def _show(sections: Iterable[Section]) -> None:
    from braid.tools.terminal.tables import print_table

    for section in sections:
        for line in (*section.lines, *([section.title] if section.title else [])):
            print(line)
        if section.table is not None:
            print_table(section.table)


def _sections(
    model: Path,
    explained: _Explained,
    views: ViewOptions,
    options: CompileOptions,
) -> Iterator[Section]:
    """Yield what was asked for, and write what was asked for in files."""
    walk, plan = explained.walk, explained.plan
    if views.html is not None and explained.page is not None:
        _write_page(views.html, explained.page)
    if views.model_explorer is not None and explained.page is not None:
        _write_node_data(views.model_explorer, model, explained.page)
    if explained.story is not None:
        from braid.tools.explain.why import lines_of

        for lines, title, table in lines_of(explained.story):
            yield Section("why", lines, title if table is not None else "", table)
    for view in explained.circuits if views.circuits else ():
        yield Section("circuits", (f"{view.title}: {view.summary}",), table=view.table)
    if views.trace is not None or views.devices:
        if views.measure is not None and walk.devices is not None:
            walk.devices.measure(_measured(model, views.measure, options))
        channels = [remark.message for remark in walk.remarks if "channels" in remark.data]
        yield from _device_sections(walk.devices, views.trace, channels, listed=views.devices)
    if views.layouts:
        yield Section("layouts", (walk.layouts.summary,), table=walk.layouts.table())
        yield Section("layouts", (), table=walk.layouts.reorders())
    if views.lists_memory and plan is not None:
        yield Section("memory", (plan.summary,))
        for title, table in plan.tables():
            yield Section("memory", (), title, table)
    if views.lists_all and explained.page is not None:
        from braid.tools.explain.kernel_listing import listing

        lines, title, table = listing(explained.page.data["summary"], explained.page.kernels)
        yield Section("kernels", lines, title, table)
        said = tuple(f"{remark.pass_name}: {remark.message}" for remark in walk.remarks)
        yield Section("decisions", said)


def _read(context: "Context", model: Path, options: CompileOptions) -> "ModuleOp":
    from braid.driver.read_source import read_to_compile
    from braid.driver.sources.signature import check_model

    module = read_to_compile(context, model, options).module
    check_model(module)
    return module


def _read_at_sizes(
    context: "Context", model: Path, options: CompileOptions, sizes: Mapping[str, int]
) -> "ModuleOp":
    """Read a model at the requested sizes, and likely ones for the rest: each has its own plan."""
    from braid.driver.sources.decision_sizes import bind_decision_sizes

    module = _read(context, model, options)
    bind_decision_sizes(context, module, sizes)
    return module


def _timelines(model: Path, options: CompileOptions) -> "tuple[TimelineView, ...]":
    """Return the timelines of the circuits of the model."""
    from braid.driver.compile_source import emit_model
    from braid.tools.explain.circuit_view import STAGE, circuit_views

    return circuit_views(str(emit_model(model, STAGE, options)))


def _circuits(model: Path, options: CompileOptions, walk: "Walk") -> "tuple[TimelineView, ...]":
    """Return the timelines of circuits, where a device has a backend that tells of stages."""
    from braid.targets.backends import backend_of
    from braid.tools.explain.circuit_view import STAGE

    used = [] if walk.devices is None else [stage.device for stage in walk.devices.stages]
    if not any(STAGE in backend_of(walk.target.device(name)).stages for name in used):
        return ()
    return _timelines(model, options)


def _measured(model: Path, requests: int, options: CompileOptions) -> dict[str, float]:
    """Return the seconds of one run of each function that is a stage of a stream."""
    from braid.driver.compile import compile_or_load
    from braid.runtime.binding import bind_inputs
    from braid.tools.commands.diagnostics import compiling
    from braid.tools.commands.models import step_inputs
    from braid.tools.commands.streaming import measure_stream

    with compiling(model):
        compiled = compile_or_load(model, options)
    values = step_inputs(model, options, compiled, None, {}, {}).values(0)
    arrays = bind_inputs(compiled.inputs, (), values)
    figures = measure_stream(compiled, repeat(arrays), requests, warmup=2)
    return {stage.name: stage.seconds for stage in figures.stages}


def _write_page(path: Path, page: "ModelPage") -> None:
    from braid.tools.explain.render import render
    from braid.tools.terminal.outputs import write_files

    write_files({path: render(page.data).encode()})


def _write_node_data(path: Path, model: Path, page: "ModelPage") -> None:
    from braid.tools.explain.model_explorer import node_data, node_names
    from braid.tools.explain.model_names import model_ops
    from braid.tools.terminal.outputs import write_files

    assert page.walk.whole is not None
    nodes = (node for node in page.walk.whole.nodes if node.kind not in ("input", "output"))
    read = {node.name for node in page.walk.whole.nodes}
    names = list(model_ops((node.name for node in nodes), read))
    write_files({path: node_data(page.kernels, names, node_names(model))})


def _device_sections(
    found: "DeviceExplanation | None",
    trace: Path | None,
    channels: Sequence[str],
    *,
    listed: bool,
) -> Iterator[Section]:
    from braid.tools.terminal.outputs import write_files

    if found is None:
        raise BraidError(
            "the model runs on one device",
            hint="give a target with several (--target), or --partition or --pin",
        )
    if trace is not None:
        write_files({trace: found.trace().encode()})
    if listed:
        yield Section("devices", (found.summary,), table=found.devices())
        yield Section("devices", (), table=found.table())
        yield Section("devices", tuple(f"In a stream: {line}" for line in channels))
