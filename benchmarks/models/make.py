"""Writes the models: `python -m benchmarks.models.make DIRECTORY [NAME…]`.

Without names, it makes all models that the installed packages support, except for models of one
operator and of decoding, which are selected by the names `operators` and `decoding`. The exit
status is 1 if one failed.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import onnx
from onnx import ModelProto

from benchmarks.models import control_flow, darts, decoding, hand_written, light, operators

Maker = Callable[[], ModelProto]
SETS = {"operators": operators.MODELS, "decoding": decoding.MODELS}


def makers() -> dict[str, Maker]:
    """Every model that the installed packages can make, by name."""
    found: dict[str, Maker] = {name: partial(light.make_light, name) for name in light.NAMES}
    found |= control_flow.MODELS | darts.MODELS | operators.MODELS | decoding.MODELS
    found["loop_if"] = hand_written.make_loop_if
    found["transformer_block"] = hand_written.make_transformer_block
    if all(importlib.util.find_spec(package) for package in ("torch", "transformers")):
        from benchmarks.models import torch_models, variants

        found |= {name: partial(torch_models.make_torch, name) for name in torch_models.MODELS}
        found |= {name: partial(torch_models.make_open, name) for name in torch_models.OPEN}
        found |= variants.VARIANTS
        if importlib.util.find_spec("timm"):
            from benchmarks.models import timm_models

            found |= {name: partial(timm_models.make_timm, name) for name in timm_models.MODELS}
    return found


def make(directory: Path, name: str) -> Path:
    """Return the file of model `name` in `directory`, after making it if it is missing."""
    path = directory / f"{name}.onnx"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        onnx.save(makers()[name](), unfinished)
        unfinished.rename(path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    known = makers()
    apart = {name for models in SETS.values() for name in models}
    asked: list[str] = options.names or sorted(known.keys() - apart)
    names = [name for each in asked for name in SETS.get(each, [each])]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    failed = False
    for name in names:
        start = time.perf_counter()
        try:
            path = make(options.directory, name)
        except Exception as error:  # exporters raise anything
            failed = True
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        size = path.stat().st_size / 2**20
        print(f"{name}: {size:.1f} MiB in {time.perf_counter() - start:.1f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
