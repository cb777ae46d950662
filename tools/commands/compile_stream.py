"""`braid compile` for a chip: the instruction stream, linked from its subgraphs."""

import sys
from collections.abc import Mapping
from pathlib import Path

SEARCH_SECONDS = 1.0


def compile_for_chip(
    model: Path,
    output: Path,
    target: str,
    shapes: Mapping[str, tuple[int, ...]],
    jobs: int | None,
    search_seconds: float | None,
) -> None:
    """Compile a model to a stream (.txt as text, otherwise binary), and say what was compiled.

    Raises:
        BraidError: as `compile_stream`.

    """
    from braid.chip import compile_stream
    from braid.lowering.host.codegen.compiler import available_cpus
    from braid.lowering.npu.lower_to_instructions import encoded
    from braid.support.atomic_file import atomic_file
    from braid.tools.commands.diagnostics import compiling

    with compiling(model):
        built = compile_stream(
            model,
            target=target,
            shapes=shapes,
            jobs=jobs or available_cpus(),
            search_seconds=SEARCH_SECONDS if search_seconds is None else search_seconds,
        )
    with atomic_file(output) as file:
        file.write(encoded(built.stream, output))
    print(f"{built}; {len(built.stream.instructions)} instructions", file=sys.stderr)
