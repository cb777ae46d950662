"""Shared objects that hold a whole model, with a header for C and C++."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from braid.driver.packaging.c_interface import CInterface, identifier
from braid.lowering.host.codegen.link import LibrarySources, link_library
from braid.runtime.manifest import Manifest
from braid.runtime.native_abi import find_headers, find_runtime
from braid.support.atomic_file import atomic_file
from braid.support.errors import BraidError
from braid.support.option_names import by_door
from braid.targets.machines.cpus import NATIVE, cpu_machine

_LARGEST_WEIGHTS = 2**31 - 2**26
"""Bytes that code can be away from, less room for the code itself."""

_CPU_FEATURES = {"x86_64": "cpu_features_x86.c", "aarch64": "cpu_features_aarch64.c"}
"""The source of the runtime that is for one architecture alone."""

_WEIGHTS = """
    .section .rodata
    .balign 4096
    .globl braid_weights, braid_weights_end
    .hidden braid_weights, braid_weights_end
braid_weights:
    .incbin "weights"
braid_weights_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
"""


def write_c_library(
    path: str | os.PathLike[str],
    manifest: Manifest,
    objects: Sequence[bytes],
    weights: NDArray[np.uint8],
) -> None:
    """Write a shared object at `path`, and beside it the header, with the suffix `.h`.

    The shared object holds the weights and braid's runtime; it exports only the functions of the
    header, whose names start with the file's.

    Raises:
        BraidError: the weights take 2 GiB or more, there is no C compiler, or a file cannot be
            written.

    """
    target = Path(path)
    prefix = identifier(target.stem)
    interface = CInterface(
        prefix,
        manifest.model,
        manifest.builder,
        manifest.inputs,
        manifest.outputs,
        manifest.dims,
        manifest.output_shapes,
        decides_sizes=manifest.phases > 0,
    )
    if weights.nbytes > _LARGEST_WEIGHTS:
        raise BraidError(
            f"the weights take {weights.nbytes} bytes, a shared object holds at most "
            f"{_LARGEST_WEIGHTS}",
            hint="write an artifact (.braid), and open it with braid_model_open",
        )
    runtime, runtime_includes = _runtime_for(manifest.triple)
    header = interface.header()
    sources = LibrarySources(
        files={
            f"{prefix}.h": header.encode(),
            "interface.c": interface.source().encode(),
            "weights.s": _WEIGHTS.encode(),
            "weights": weights.data,
        },
        includes=(find_headers(), *runtime_includes),
        runtime=runtime,
        exports=f"{prefix}_*",
        name=target.name,
        libraries=manifest.libraries,
    )
    library = link_library(objects, sources)
    with atomic_file(target) as file:
        file.write(library)
        with atomic_file(target.with_suffix(".h")) as header_file:
            header_file.write(header.encode())


def _runtime_for(triple: str) -> tuple[list[Path], list[Path]]:
    """Return the runtime for machines of this triple, and where its sources find their headers.

    It is the archive of this braid, or its sources for another architecture.
    """
    architecture = triple.partition("-")[0]
    if architecture == cpu_machine(NATIVE).architecture:
        return [find_runtime("libbraid_runtime.a")], []
    if architecture not in _CPU_FEATURES:
        raise BraidError(
            f"braid's runtime knows {', '.join(_CPU_FEATURES)}, not {architecture}",
            hint=by_door(
                "save an artifact (Model.save), which the runtime there loads",
                "emit an object ('braid compile --emit=obj'), and link it with a runtime of your "
                "own",
            ),
        )
    directory = find_headers().parent / "src"
    others = set(_CPU_FEATURES.values()) - {_CPU_FEATURES[architecture]}
    sources = sorted(path for path in directory.glob("*.c") if path.name not in others)
    if not sources:
        raise BraidError(
            f"the sources of braid's runtime are not at '{directory}'",
            hint="install braid again; they are compiled for other architectures than this one",
        )
    return sources, [directory]
