"""`braid reduce`: the smallest model on which a command still fails."""

from pathlib import Path
from typing import Annotated

import typer

from braid.tools.commands.options import SourceArgument, seconds_option
from braid.tools.terminal.answer import Answer


def reduce(
    model: SourceArgument,
    command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="The failing command line; {} in it is the model, by default at its end.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to write; by default beside MODEL, such as model.reduced.onnx.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Pattern of the same failure's output."),
    ] = None,
    timeout: Annotated[float, seconds_option("End a run of the command after so long.")] = 120.0,
) -> Answer:
    """Shrink a model to the ops that make a command fail.

    A smaller model counts if the command ends with the same status as on the whole one and, with
    --match, prints matching text. Ops are left out one by one and in groups: their results become
    inputs. Branches and loops are replaced by what is in them.
    """
    from braid.tools.commands.diagnostics import counting
    from braid.tools.reduction.command import Command, symptom_of
    from braid.tools.reduction.reduce import reduce_model
    from braid.tools.terminal.outputs import check_outputs, write_files

    output = output or model.with_suffix(f".reduced{model.suffix}")
    check_outputs(output)
    failing = Command(command, timeout)
    symptom = symptom_of(failing, model, match)
    with counting(f"reducing {model.name}") as show:
        reduction = reduce_model(
            model, failing, symptom, lambda runs: show(f"reducing {model.name}: run {runs}")
        )
    write_files({output: reduction.content})
    counts = {"before": reduction.before, "after": reduction.after, "runs": reduction.runs}
    said = f"{output}: {reduction.after} of {reduction.before} ops, {reduction.runs} runs"
    return Answer({"output": str(output), **counts}, lambda: print(said))
