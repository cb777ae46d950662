"""`braid verify`: the first op whose result differs from a reference, and by how much."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from braid.tools.commands.options import (
    InputOption,
    InterpretOption,
    JobsOption,
    SeedOption,
    ShapeOption,
    SourceArgument,
    TargetOption,
    ThreadsOption,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from braid.layerwise import Difference


def verify(
    model: SourceArgument,
    inputs: InputOption = None,
    seed: SeedOption = 0,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest ‖y − ref‖∞ / ‖ref‖∞ that is no difference.")
    ] = 1e-4,
    interpret: InterpretOption = False,
    shape: ShapeOption = None,
    threads: ThreadsOption = 1,
    target: TargetOption = "host",
    jobs: JobsOption = None,
) -> None:
    """Compare a model, op by op, with ONNX Runtime or with the interpreter.

    The reference is ONNX Runtime for ONNX models where it is installed, and else the interpreter;
    it is the interpreter for ops inside branches and loops, of which the last iteration counts.
    Inputs that are not given are random. The status is 1 if an op differs.
    """
    from braid.errors import BraidError
    from braid.interpreted import interpret as interpret_module
    from braid.layerwise import differences, expose_results
    from braid.nested_results import has_run
    from braid.sources import read_source
    from braid.tools.commands.arrays import random_inputs, read_inputs
    from braid.tools.commands.options import parse_shapes
    from braid.tools.commands.reference import OnnxReference, onnxruntime_is_installed
    from braid.universe import make_context

    source = read_source(make_context(), model, shapes=parse_shapes(shape))
    against_onnx = model.suffix == ".onnx" and onnxruntime_is_installed()
    if interpret and not against_onnx:
        raise BraidError(
            "the interpreter would be compared with itself",
            hint="leave out --interpret, or verify an ONNX model with onnxruntime installed",
        )
    reference_model = OnnxReference(model) if against_onnx else None
    names = reference_model.value_names if reference_model else None
    order = expose_results(source.module, names)
    module, parameters = source.module, source.parameters
    if interpret:
        tested = interpret_module(module, parameters=parameters)
    else:
        from braid.compiler import compile

        tested = compile(module, parameters=parameters, target=target, threads=threads, jobs=jobs)
    values = random_inputs(tested.inputs, seed, read_inputs(inputs))
    actual = tested.run_named(values)
    known = set(reference_model.value_names) if reference_model else set[str]()
    own = [spec.name for spec in tested.outputs if spec.name not in known]
    expected: dict[str, NDArray[Any]] = {}
    if own:
        computed = interpret_module(module, parameters=parameters).run_named(values)
        expected = {name: computed[name] for name in own if has_run(computed[name])}
    if reference_model:
        expected |= reference_model.run(values, [name for name in order if name in known])
    found = differences(order, actual, expected)
    reference = "ONNX Runtime" if against_onnx else "the interpreter"
    if against_onnx and own:
        reference += " and, inside branches and loops, with the interpreter"
    _report(found, tolerance, reference)


def _report(found: "list[Difference]", tolerance: float, reference: str) -> None:
    wrong = [difference for difference in found if not difference.error <= tolerance]
    if not found:
        print("the model computes nothing that could differ")
        return
    if not wrong:
        worst = max(found, key=lambda difference: difference.error)
        print(
            f"all {len(found)} ops agree with {reference} within {tolerance:g}; "
            f"the largest error is {worst.error:.3g}, of '{worst.name}'"
        )
        return
    first = wrong[0]
    print(f"first op that differs from {reference}: '{first.name}', by {first.error:.3g}")
    for difference in wrong[1:10]:
        print(f"  then '{difference.name}', by {difference.error:.3g}")
    print(f"{len(wrong)} of {len(found)} ops differ by more than {tolerance:g}")
    raise typer.Exit(1)
