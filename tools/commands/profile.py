"""`braid profile`: what to do with profiles."""

from pathlib import Path
from typing import Annotated

import typer

from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup

profile = CommandGroup(name="profile", help="Merge profiles.")


@profile.command()
def merge(
    profiles: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of braid run --profile.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the sum.")
    ],
) -> Answer:
    """Write one profile that says what several say together.

    Counts and seconds of an op add up. Profiles of runs on other shapes, or of a model that was
    compiled in another way, are refused.
    """
    from braid.analysis.profile.profile_file import merge_records
    from braid.tools.terminal.outputs import check_outputs, write_files

    check_outputs(output)
    merged = merge_records(profiles)
    write_files({output: merged.to_bytes()})
    data = {"output": str(output), "profiles": len(profiles), "ops": len(merged.ops)}
    return Answer(data, lambda: print(f"{len(profiles)} profiles, {len(merged.ops)} ops"))
