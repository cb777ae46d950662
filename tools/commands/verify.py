"""`braid verify`: the first op whose result differs from a reference, and by how much."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import (
    AtOption,
    InputOption,
    InterpretOption,
    SeedOption,
    SourceArgument,
)
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.option_values import parse_at

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from braid.dialects.braid.clusters import Placement
    from braid.driver.sources.source_model import SourceModel
    from braid.runtime.model import Model
    from braid.runtime.state_session import StateSession
    from braid.tools.commands.reference import OnnxReference
    from braid.tools.commands.step_inputs import StepInputs
    from braid.tools.comparison.clusterwise import SingleClusters
    from braid.tools.comparison.layerwise import Difference

    Arrays = Mapping[str, NDArray[Any]]
    _Exposed = tuple[Sequence[str], SingleClusters, Mapping[str, Placement]]

_TOLERANCE = 1e-4
"""Largest error by default of a model in f32 or f64."""
_STEPS = 3
"""How many steps are compared by default of a model with a state."""
_HALF = {"float16": 2.0**-8, "bfloat16": 2.0**-5}
"""The same by other types: ONNX Runtime rounds after each op."""

ToleranceOption = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        min=0,
        help="Largest ‖y − ref‖∞ / ‖ref‖∞ that is not a difference; by default 0.0001, or where"
        " results are in f16 or bf16 0.0039 or 0.031.",
    ),
]
PerClusterOption = Annotated[
    bool,
    typer.Option(
        "--per-cluster",
        help="On a target with several devices, compare what leaves each cluster, and no more.",
    ),
]
NoFamiliesOption = Annotated[
    bool,
    typer.Option(
        "--no-families",
        help="Compile without kernel families: code is made of the ops' structures alone.",
    ),
]

StepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Steps that are compared of a model with a state; 3 by default."
    ),
]


@grouped
def verify(
    model: SourceArgument,
    options: Annotated[
        CompileOptions,
        only(
            *(
                "shapes",
                "dims",
                "constants",
                "state",
                "threads",
                "target",
                "gpu_arch",
                "jobs",
                "emulate",
            ),
            *("partition", "pin", "numerics", "precision"),
        ),
    ],
    inputs: InputOption = None,
    at: AtOption = None,
    seed: SeedOption = 0,
    tolerance: ToleranceOption = None,
    interpret: InterpretOption = False,
    per_cluster: PerClusterOption = False,
    no_families: NoFamiliesOption = False,
    steps: StepsOption = None,
) -> Answer:
    """Compare a model, op by op, with a reference.

    The reference is ONNX Runtime for ONNX models where it is installed, and else the interpreter;
    it is the interpreter for ops inside branches and loops, where the last iteration counts, and
    for models that ONNX Runtime does not load. What is verified is the code that this model gets: a
    kernel family hides the structure of the ops that it computes. With --per-cluster, clusters are
    those that the model has without this option. The reference is the interpreter on the results of
    earlier clusters, so that each is judged alone. A cluster whose device computes in another type
    may declare a tolerance. Inputs that are not given are random. A model with open dims is
    compiled for any sizes and compared at those of --at, or at likely ones. The status is 1 if an
    op differs. With a state (--state, or the module's own), --steps steps are compared: one at the
    sizes of --at or at likely sizes, then steps with one new element each. Each side goes on from
    its own state, which begins as --input gives it, random if --at gives one of its sizes, and
    empty by default.
    """
    from functools import partial

    from braid.driver.read_source import read_to_compile
    from braid.driver.sources.decision_sizes import decision_sizes, required_sizes
    from braid.passes.infrastructure.context import make_context
    from braid.support.settings import Kernels
    from braid.tools.commands.arrays import read_inputs, sized_inputs
    from braid.tools.commands.models import input_ranges
    from braid.tools.commands.step_inputs import StepInputs
    from braid.tools.commands.steps import session_of
    from braid.tools.comparison.layerwise import differences
    from braid.tools.comparison.stepwise import compare_steps

    _check_options(interpret, no_families, per_cluster, options)
    given, sizes = read_inputs(inputs), parse_at(at)
    if no_families:
        options = replace(options, kernels=Kernels.GENERIC)
    known = make_context()
    # If clusters are compared, they are those of the target; otherwise the ops are compared as they
    # were read.
    reading = options if per_cluster else replace(options, target=None, gpu_arch=None)
    source = read_to_compile(known, model, reading)
    likely, checks = decision_sizes(known, source.module), required_sizes(known, source.module)
    onnx_runtime = _onnx_runtime(model, options, source.module, per_cluster)
    _check_reference(interpret, onnx_runtime)
    order, alone, placements = _exposed(known, source.module, options, per_cluster, onnx_runtime)
    tested = _interpreted(source) if interpret else _compiled(source, options)
    session = session_of(tested, options.state)
    _check_steps(steps, session is not None)
    drawn = StepInputs(
        sized_inputs(tested.inputs, {}, {}, sizes),
        () if session is None else session.outputs,
        checks,
        given,
        input_ranges(source.module),
        {**likely, **sizes},
    )
    source = replace(source, module=alone.module)
    expect = partial(_expected, source, onnx_runtime)
    if session is None:
        values = drawn.values(seed)
        actual = tested.run_named(values)
        expected, reference = expect(alone.inputs(values, actual), order)
        found = differences(order, actual, expected)
    else:
        session.reset(drawn.first_state(seed, sizes))
        taken = _inputs_of_steps(drawn, session, sizes, seed, steps or _STEPS)
        found, actual, reference = compare_steps(session, taken, expect, order)
    if tolerance is None:
        module = None if interpret else source.module
        tolerance = _default_tolerance(actual.values(), options.gpu_arch or "", module)
    return _report(found, tolerance, reference, placements, alone.tolerances)


def _inputs_of_steps(
    drawn: "StepInputs",
    session: "StateSession",
    asked: Mapping[str, int],
    seed: int,
    steps: int,
) -> "Iterator[Arrays]":
    """Yield the inputs of each step: one of any length, and then such of one new element.

    What is given stays, and masks go on from those of the step before.
    """
    inputs = drawn.new(session.state, seed, drawn.likely)
    yield inputs
    stay = drawn.given.keys() | drawn.masks()
    likely = {**drawn.likely, **drawn.step_sizes(), **asked}
    for n in range(1, steps):
        before = {name: array for name, array in inputs.items() if name in stay}
        inputs = drawn.later(before, session.state, seed + n, likely)
        yield inputs


def _exposed(
    context: "Context",
    module: "ModuleOp",
    options: CompileOptions,
    per_cluster: bool,
    onnx_runtime: "OnnxReference | None",
) -> "_Exposed":
    """Return the outputs that are compared: those of clusters, or of ops."""
    if per_cluster:
        return _exposed_clusters(context, module, options)
    return _exposed_results(module, onnx_runtime)


def _exposed_clusters(
    context: "Context", module: "ModuleOp", options: CompileOptions
) -> "_Exposed":
    """Make what leaves each cluster an output, and return the reference that judges it alone."""
    from braid.tools.comparison.clusterwise import expose_clusters

    clusters = expose_clusters(context, module, options.partition, options.pin)
    return clusters.order, clusters.alone(), clusters.placements


def _exposed_results(module: "ModuleOp", onnx_runtime: "OnnxReference | None") -> "_Exposed":
    """Make what each op computes an output, as far as the reference knows it."""
    from braid.tools.comparison.clusterwise import SingleClusters
    from braid.tools.comparison.layerwise import expose_results

    order = expose_results(module, onnx_runtime.value_names if onnx_runtime else None)
    return order, SingleClusters(module), {}


def _default_tolerance(
    results: "Iterable[NDArray[Any]]", gpu_arch: str, compiled: "ModuleOp | None"
) -> float:
    """Return the default tolerance: a few roundings of f16, tf32 or bf16 where these are used."""
    from braid.dialects.braid.settings import settings_of
    from braid.support.settings import Precision

    names = {result.dtype.name for result in results}
    if compiled is not None and settings_of(compiled).precision == Precision.BF16:
        names.add("bfloat16")
    if "+tf32" in gpu_arch:
        names.add("float16")  # which has as many bits behind the point
    return max([_TOLERANCE, *(_HALF.get(name, 0.0) for name in names)])


def _check_options(
    interpret: bool,
    no_families: bool,
    per_cluster: bool,
    options: CompileOptions,
) -> None:
    """Raise BraidError for options that exclude each other."""
    from braid.support.errors import BraidError
    from braid.tools.commands.models import refuse_options

    if interpret:
        refuse_options(options, "--interpret compiles nothing")
    if interpret and no_families:
        raise BraidError(
            "the interpreter has no kernel families", hint="leave out --no-families or --interpret"
        )
    if per_cluster and options.state:
        raise BraidError(
            "--per-cluster compares single runs, and --state is for steps",
            hint="omit one of them",
        )
    if not per_cluster and (options.partition is not None or options.pin):
        raise BraidError("--partition and --pin are for --per-cluster")


def _check_steps(steps: int | None, has_state: bool) -> None:
    """Raise BraidError for a number of steps where there are none."""
    from braid.support.errors import BraidError
    from braid.support.option_names import option_text

    if steps is not None and not has_state:
        raise BraidError(
            "--steps is for models with a state, and nothing says what that of the model is",
            hint=f"give it, such as {option_text('state', {'past.*': 'present.*'})}, or leave "
            "--steps out",
        )


def _check_reference(interpret: bool, onnx_runtime: "OnnxReference | None") -> None:
    """Raise BraidError where nothing but the interpreter could judge the interpreter."""
    from braid.support.errors import BraidError

    if interpret and onnx_runtime is None:
        raise BraidError(
            "the interpreter would be compared with itself",
            hint="leave out --interpret, or verify an ONNX model with onnxruntime installed",
        )


def _onnx_runtime(
    model: Path, options: CompileOptions, module: "ModuleOp", per_cluster: bool
) -> "OnnxReference | None":
    """Return ONNX Runtime with this model, if the model is ONNX, and it is installed and loads it.

    Text is compared by its numbers, which ONNX Runtime does not know: so the module loses its text,
    and ONNX Runtime is not used.
    """
    from braid.dialects.braid.attribute_names import BOUNDARY
    from braid.tools.commands.reference import OnnxReference, onnxruntime_is_installed

    has_text = module.attributes.pop(BOUNDARY, None) is not None
    is_onnx = model.suffix.lower() == ".onnx"
    if per_cluster or has_text or not is_onnx or not onnxruntime_is_installed():
        return None
    reference = OnnxReference(model, options.constants or {})
    if reference.foreign_ops:
        ops = ", ".join(reference.foreign_ops)
        _note(f"ONNX Runtime does not know {ops}")
        return None
    refusal = reference.refusal()
    if refusal is not None:
        _note(f"ONNX Runtime does not load the model: {refusal}")
        return None
    return reference


def _note(text: str) -> None:
    from braid.support.diagnostics import Diagnostic
    from braid.tools.terminal.reporter import reporter

    reporter().show(Diagnostic("note", text))


def _interpreted(source: "SourceModel") -> "Model":
    from braid.interpreted import interpret

    return interpret(source.module, parameters=source.parameters)


def _compiled(source: "SourceModel", options: CompileOptions) -> "Model":
    """Compile the module of the source, whose sizes and settings are decided."""
    from braid.driver.compile import compile_or_load

    own = replace(
        options,
        parameters=source.parameters,
        shapes=None,
        dims=None,
        constants=None,
        partition=None,
        pin=(),
    )
    return compile_or_load(source.module, own)


def _expected(
    source: "SourceModel",
    onnx_runtime: "OnnxReference | None",
    inputs: "Arrays",
    names: Sequence[str],
) -> "tuple[Arrays, str]":
    """Return the expected values of these outputs, and the words for the reference.

    ONNX Runtime computes the values of its graph, the interpreter the others, as far as they have
    run.
    """
    from braid.tools.comparison.nested_results import has_run

    known = set(onnx_runtime.value_names) if onnx_runtime else set[str]()
    expected: dict[str, NDArray[Any]] = {}
    if not known.issuperset(names):
        computed = _interpreted(source).run_named(inputs)
        expected = {n: computed[n] for n in names if n not in known and has_run(computed[n])}
    if onnx_runtime is None:
        return expected, "the interpreter"
    words = "ONNX Runtime"
    if not known.issuperset(names):
        words += " and, inside branches and loops, with the interpreter"
    return expected | onnx_runtime.run(inputs, [n for n in names if n in known]), words


def _report(
    found: "list[Difference]",
    tolerance: float,
    reference: str,
    clusters: "Mapping[str, Placement]",
    declared: Mapping[str, float],
) -> Answer:
    """Report differences above `tolerance`, or above the tolerance that a cluster declares."""
    wrong = [d for d in found if not d.error <= max(tolerance, declared.get(d.name, 0.0))]
    largest = max(found, key=lambda difference: difference.error, default=None)
    data = {
        "reference": reference,
        "tolerance": tolerance,
        "compared": len(found),
        "largest": None if largest is None else asdict(largest),
        "differing": [asdict(difference) for difference in wrong],
    }
    lines = _lines(found, wrong, tolerance, reference, clusters, declared)
    return Answer(data, lambda: print("\n".join(lines)), status=1 if wrong else 0)


def _lines(
    found: "Sequence[Difference]",
    wrong: "Sequence[Difference]",
    tolerance: float,
    reference: str,
    clusters: "Mapping[str, Placement]",
    declared: Mapping[str, float],
) -> list[str]:
    """Return what is printed of the differences."""

    def named(difference: "Difference") -> str:
        cluster = clusters.get(difference.name)
        return f"'{difference.name}'" + (f" of cluster {cluster}" if cluster is not None else "")

    what = "values that leave clusters" if clusters else "ops"
    one = "value" if clusters else "op"
    within = f"{tolerance:g}"
    if any(bound > tolerance for bound in declared.values()):
        within += f", or what clusters declare, {max(declared.values()):g} at most"
    if not found:
        return ["the model computes nothing that could differ"]
    if not wrong:
        worst = max(found, key=lambda difference: difference.error)
        return [
            f"all {len(found)} {what} agree with {reference} within {within}; "
            f"the largest error is {worst.error:.3g}, of {named(worst)}"
        ]
    first = wrong[0]
    return [
        f"first {one} that differs from {reference}: {named(first)}, by {first.error:.3g}",
        *(f"  then {named(each)}, by {each.error:.3g}" for each in wrong[1:10]),
        f"{len(wrong)} of {len(found)} {what} differ by more than {within}",
    ]
