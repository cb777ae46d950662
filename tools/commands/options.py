"""Options that several commands have, and the reading of their values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from braid.support.errors import BraidError

ARTIFACT_SUFFIX = ".braid"


def seconds_option(help: str) -> Any:
    """An option that takes a time."""
    return typer.Option(metavar="SECONDS", min=0, help=help)


ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model: .onnx, .mlir or .braid.")
]
SourceArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model: .onnx or .mlir.")]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DIMS",
        help="Shape of an input with open dims, such as x=1,3,8. Repeatable.",
    ),
]
BucketsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape-buckets",
        metavar="DIM=SIZES",
        help="Sizes of open dims to compile for, such as batch=1,2,4;sequence=32,64. Repeatable.",
    ),
]
BoundOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape-bound",
        metavar="DIM=SIZE",
        help="Largest size of an open dim, such as batch=8; inputs are padded up to one of the "
        "sizes that braid chooses. Repeatable.",
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=FILE", help="Value of an input, such as x=x.npy. Repeatable."
    ),
]
RandomOption = Annotated[
    bool, typer.Option("--random", help="Take random values for inputs that are not given.")
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Seed of the random values.")]
ThreadsOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Threads of a run; 0 for all CPUs.")
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        help="Machine to compile for: a name or a .toml file; by default host, or what the model "
        "says.",
    ),
]
CpuOption = Annotated[
    str | None,
    typer.Option(
        "--cpu",
        metavar="CPU",
        help="CPU of the host to compile for, by LLVM's name, with features where it has others: "
        "haswell, or x86-64-v3,+avxvnni.",
    ),
]
GpuArchOption = Annotated[
    str | None,
    typer.Option(
        "--gpu-arch",
        metavar="ARCH",
        help="Architecture of the target's GPUs: sm_80, sm_90a and others. sm_90a,+tf32, or +tf32 "
        "alone, permits products of f32 to round what they multiply to tf32; +cubin adds machine "
        "code by ptxas.",
    ),
]
OptionalTargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        help="Machine to compile for, by default host: a name or a .toml file. An artifact must "
        "have been compiled for it.",
    ),
]
PartitionOption = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="How ops are assigned to the devices of the target: by priority (the default: its "
        "mapping lists), latency (of a request) or throughput (of a stream).",
    ),
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT=WHERE",
        help="Run the op of this name, or all of a kind, on a device or backend: conv1=npu:0, "
        "op:conv=npu. Repeatable.",
    ),
]
EmulateOption = Annotated[
    bool,
    typer.Option(
        "--emulate",
        help="Run what is for missing devices, and backends that are not installed, on the host, "
        "no faster than the target says.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Processes that compile kernels; by default one a CPU."),
]
UseProfileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Weigh decisions by this profile, as braid run --profile writes it."
    ),
]
UnseenOption = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        min=0.0,
        max=0.5,
        help="Probability of branches that the profile never saw, by default 0.001.",
    ),
]
CacheOption = Annotated[
    bool,
    typer.Option(
        "--cache/--no-cache",
        help="Take what was compiled before of the same model and options, and keep what is now.",
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Recompute what does not fit into SIZE: bytes, or with a unit as in 512MiB.",
    ),
]
InterpretOption = Annotated[
    bool, typer.Option("--interpret", help="Run the numpy interpreter instead of compiled code.")
]


def split_pair(option: str, text: str) -> tuple[str, str]:
    """Split `name=value` at its last `=`, since names may hold one.

    Raises:
        BraidError: there is no `=`, or nothing before it.

    """
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        raise BraidError(f"{option} is '{text}', expected NAME=VALUE")
    return name, value


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape`.

    Raises:
        BraidError: one is not `name=d0,d1,…` with sizes of at least 0, or a name comes twice.

    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, dims = split_pair("--shape", text)
        if name in shapes:
            raise BraidError(f"--shape is given twice for '{name}'")
        parts = [part.strip() for part in dims.split(",")] if dims else []
        if not all(part.isdecimal() for part in parts):
            raise BraidError(
                f"--shape for '{name}' is '{dims}', expected sizes separated by commas",
                hint=f"such as --shape {name}=1,3,224,224",
            )
        shapes[name] = tuple(int(part) for part in parts)
    return shapes


def parse_buckets(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read the values of `--shape-buckets`, each of one or more dims separated by `;`.

    Raises:
        BraidError: one is not `dim=size,size,…`, or a dim comes twice.

    """
    return _parse_sizes("--shape-buckets", [p for t in texts or () for p in t.split(";")])


def parse_bounds(texts: Sequence[str] | None) -> dict[str, int]:
    """Read the values of `--shape-bound`.

    Raises:
        BraidError: one is not `dim=size`, or a dim comes twice.

    """
    bounds = _parse_sizes("--shape-bound", texts or ())
    for name, sizes in bounds.items():
        if len(sizes) != 1:
            raise BraidError(
                f"--shape-bound for '{name}' has {len(sizes)} sizes, expected one",
                hint="several sizes are given with --shape-buckets",
            )
    return {name: sizes[0] for name, sizes in bounds.items()}


def _parse_sizes(option: str, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, sizes = split_pair(option, text.strip())
        if name in result:
            raise BraidError(f"{option} is given twice for '{name}'")
        parts = [part.strip() for part in sizes.split(",")]
        if not all(part.isdecimal() for part in parts):
            raise BraidError(
                f"{option} for '{name}' is '{sizes}', expected sizes separated by commas",
                hint=f"such as {option} {name}=1,2,4",
            )
        result[name] = tuple(map(int, parts))
    return result
