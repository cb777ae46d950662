"""`braid import`: from ONNX to MLIR, with the weights in a file beside it."""

from pathlib import Path
from typing import Annotated

import typer

from braid.driver.options import CompileOptions
from braid.tools.commands.option_groups import grouped, only
from braid.tools.commands.options import SourceArgument
from braid.tools.terminal.answer import Answer

WEIGHTS_SUFFIX = ".safetensors"


@grouped
def import_model(
    model: SourceArgument,
    options: Annotated[
        CompileOptions, only("shapes", "dims", "constants", "shape_buckets", "shape_bounds")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The .mlir file; the weights go beside it, to .safetensors. Without -o "
            "the module is printed, and no weights are written.",
        ),
    ] = None,
) -> Answer:
    """Import a model as MLIR in the braid dialect."""
    from xdsl.dialects.builtin import StringAttr

    from braid.dialects.braid.attribute_names import PARAMETERS
    from braid.driver.read_source import read_source
    from braid.frontends.parameters import write_parameters
    from braid.passes.infrastructure.context import make_context
    from braid.support.atomic_file import atomic_file
    from braid.tools.terminal.outputs import STANDARD_OUTPUT, check_outputs
    from braid.tools.terminal.printing import module_text

    weights = _weights_beside(output)
    check_outputs(output, weights, model=None if model.suffix == ".mlir" else model)
    context = make_context()
    source = read_source(
        context,
        model,
        shapes=options.shapes,
        dims=options.dims,
        constants=options.constants,
        buckets=options.shape_buckets,
        bounds=options.shape_bounds,
    )
    if output is None or output == STANDARD_OUTPUT:
        text = module_text(context, source.module)
        data = {"model": str(model), "output": None, "weights": None, "text": text}
        return Answer(data, lambda: print(text, end=""))
    if source.parameters and weights is not None:
        source.module.attributes[PARAMETERS] = StringAttr(weights.name)
    # The module is written first: a full disk is then found before either name is taken.
    with atomic_file(output) as file:
        file.write(module_text(context, source.module).encode())
        file.flush()
        if source.parameters and weights is not None:
            with atomic_file(weights) as weights_file:
                write_parameters(weights_file, source.parameters)
    beside = str(weights) if source.parameters and weights is not None else None
    return Answer({"model": str(model), "output": str(output), "weights": beside, "text": None})


def _weights_beside(output: Path | None) -> Path | None:
    """Return the file for the weights; None for standard output, devices and pipes."""
    from braid.tools.terminal.outputs import STANDARD_OUTPUT

    if output is None or output == STANDARD_OUTPUT or (output.exists() and not output.is_file()):
        return None
    return output.with_suffix(WEIGHTS_SUFFIX)
