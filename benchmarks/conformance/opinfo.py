"""PyTorch's own samples of its ops through braid: `python -m benchmarks.conformance.opinfo`.

Each op of PyTorch's table of tests (`OpInfo`) that takes f32 runs once, on the first sample that
the table makes for it, through `torch.compile(backend="braid")` and through `braid.from_torch`.
Needs torch, onnxscript and expecttest.
"""

import argparse
import json
import logging
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import count, no_case, output_file
from benchmarks.case_process import READY, CaseLost, CaseProcess, run_side_by_side
from benchmarks.provenance import provenance

SEED = 0
WAYS = ("compile", "from_torch")
NO_VALUES = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty")
"""Prefixes of ops whose results have any values: of these, types and shapes are compared."""


RANDOM_OPS = {
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
    *("RandomUniform", "RandomUniformLike"),
}


class Ending(StrEnum):
    """The outcome of an op. In the first five, eager takes it and the exporter makes a model."""

    RIGHT = "right"
    WRONG = "wrong"  # and nobody says so
    REPORTED = "exported wrong, and reported"
    REFUSED = "refused by braid"
    FAILED = "failed"  # a crash, a hang, or an error that is no BraidError
    NOT_EXPORTED = "not exportable"
    RANDOM = "draws random numbers"
    ANY_VALUES = "has any values"
    NO_GRAPH = "no graph"  # TorchDynamo hands none over, or one without ops
    NO_SAMPLE = "no sample, or not for eager"


TAKEN = (Ending.RIGHT, Ending.WRONG, Ending.REPORTED, Ending.REFUSED, Ending.FAILED)


@dataclass(frozen=True)
class Sample:
    """An op as a function of tensors alone; `compares` unless its results have any values."""

    function: Callable[..., Any]
    tensors: Sequence[Any]
    compares: bool


def ops() -> dict[str, Any]:
    """Return the entries of PyTorch's table that take f32, by name and variant."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    return {
        ".".join(filter(None, (entry.name, entry.variant_test_name))): entry
        for entry in op_db
        if torch.float32 in entry.dtypes
    }


def sample_of(entry: Any) -> Sample | None:
    """Return the first sample of an op, None if there is none."""
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    torch.manual_seed(SEED)
    first = next(iter(entry.sample_inputs("cpu", torch.float32, requires_grad=False)), None)
    if first is None:
        return None
    leaves, structure = tree_flatten(((first.input, *first.args), first.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: Any) -> Any:
        own = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            own[place] = tensor
        args, kwargs = tree_unflatten(own, structure)
        return entry.op(*args, **kwargs)

    compares = not entry.name.startswith(NO_VALUES)
    return Sample(function, [leaves[place] for place in places], compares)


def run(entry: Any, way: str) -> tuple[Ending, str]:
    """Return what becomes of an op, and why; never raises."""
    try:
        sample = sample_of(entry)
        if sample is None:
            return Ending.NO_SAMPLE, ""
        try:
            results_of(sample, sample.function)
        except Exception as error:  # such as of an op for GPUs
            return Ending.NO_SAMPLE, str(error).partition("\n")[0]
        return by_compile(sample) if way == "compile" else by_export(sample)
    except Exception as error:
        lines = str(error).splitlines()
        return Ending.FAILED, f"{type(error).__name__}: {lines[0] if lines else ''}"


def results_of(sample: Sample, function: Callable[..., Any]) -> list[Any]:
    """Return the tensors that a function computes from a sample, with the same random numbers each
    time."""
    import torch
    from torch.utils._pytree import tree_leaves

    torch.manual_seed(SEED)
    with torch.no_grad():
        results = tree_leaves(function(*(tensor.clone() for tensor in sample.tensors)))
    results = [x.to_dense() if is_sparse(x) else x for x in results]
    return [each for each in results if isinstance(each, torch.Tensor | np.ndarray | int | float)]


def is_sparse(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.layout != torch.strided


def difference_of(sample: Sample, found: Sequence[Any], expected: Sequence[Any]) -> str | None:
    from braid.torch_comparison import first_difference

    if sample.compares:
        return first_difference(found, expected)
    kinds = [[kind_of(each) for each in results] for results in (found, expected)]
    return None if kinds[0] == kinds[1] else f"{kinds[0]}, expected {kinds[1]}"


def kind_of(value: Any) -> tuple[str, tuple[int, ...]]:
    return str(value.dtype).removeprefix("torch."), tuple(value.shape)


def by_compile(sample: Sample) -> tuple[Ending, str]:
    """Through `torch.compile`; results of eager mode are right only if braid says so."""
    import torch

    said: list[logging.LogRecord] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record)

    log, listening = logging.getLogger("braid.torch"), Listening()
    torch.compiler.reset()
    expected = results_of(sample, sample.function)
    log.addHandler(listening)
    log.setLevel(logging.DEBUG)  # the diagnostic whose INFO has the reason
    log.propagate = False
    try:
        found = results_of(sample, torch.compile(sample.function, backend="braid"))
    finally:
        log.removeHandler(listening)
    difference = difference_of(sample, found, expected)
    if difference is not None:
        return Ending.WRONG, difference
    if not sample.compares:
        return Ending.ANY_VALUES, ""
    reasons = [record.exc_info[1] for record in said if record.exc_info]
    if reasons:
        return ending_of(reasons[0])
    has_graph = any(record.levelno >= logging.INFO for record in said)
    return (Ending.RIGHT, "") if has_graph else (Ending.NO_GRAPH, "")


def by_export(sample: Sample) -> tuple[Ending, str]:
    """Through `braid.from_torch` and `braid.compile`."""
    import torch

    import braid
    from braid.support.errors import BraidError
    from braid.torch_comparison import random_op

    class Module(torch.nn.Module):
        def forward(self, *tensors: Any) -> Any:
            return sample.function(*tensors)

    expected = results_of(sample, sample.function)
    try:
        proto = braid.from_torch(Module(), tuple(sample.tensors), verify=sample.compares)
        graphs = (proto.graph, *proto.functions)
        if any(node.op_type in RANDOM_OPS for graph in graphs for node in graph.node):
            return Ending.RANDOM, ""
        model = braid.compile(proto, jobs=1)
        found = results_of(sample, lambda *tensors: model.run(list(map(_real, tensors))))
    except BraidError as error:
        ending = ending_of(error)
        if ending[0] is Ending.REPORTED:
            program = torch.export.export(Module(), tuple(sample.tensors))
            if random_op(program.graph) is not None:
                return Ending.RANDOM, ending[1]
        return ending
    difference = difference_of(sample, found, expected)
    if difference is None:
        return Ending.RIGHT if sample.compares else Ending.ANY_VALUES, ""
    return Ending.WRONG, difference


def _real(tensor: Any) -> Any:
    """Complex numbers as the pairs of real ones that ONNX models have in their place."""
    import torch

    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def ending_of(error: BaseException) -> tuple[Ending, str]:
    """Return the text of an error of braid."""
    from braid.support.errors import BraidError
    from braid.torch_comparison import DifferenceError
    from braid.torch_exporter import ExportError

    text = getattr(error, "message", str(error))
    match error:
        case DifferenceError():
            return Ending.REPORTED, text
        case ExportError():
            return Ending.NOT_EXPORTED, text
        case _ if "random numbers" in text:
            return Ending.RANDOM, text
        case BraidError():
            return Ending.REFUSED, text
        case _:
            return Ending.FAILED, f"{type(error).__name__}: {text}"


def _serve(channel: Connection) -> None:
    import torch

    warnings.simplefilter("ignore")
    logging.disable(logging.NOTSET)
    torch.set_num_threads(1)
    entries = ops()
    channel.send(READY)
    while (request := channel.recv()) is not None:
        name, way = request
        channel.send(run(entries[name], way))


def main() -> int:
    """Run the ops, print their outcomes, and write them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance.opinfo")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="names, such as 'linalg.*'")
    parser.add_argument("--ways", default=",".join(WAYS), help="compile, from_torch, or both")
    parser.add_argument("--sample", type=count, metavar="N", help="so many, as if by chance")
    parser.add_argument("--jobs", type=count, default=2, metavar="N")
    parser.add_argument("--seconds", type=float, default=180.0, help="of a case at most")
    parser.add_argument("--json", type=output_file, metavar="FILE")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        parser.error(f"--ways has '{unknown[0]}', expected {' or '.join(WAYS)}")
    names = sorted(ops())
    chosen = [
        n for n in names if not options.patterns or any(fnmatch(n, p) for p in options.patterns)
    ]
    chosen.sort(key=lambda name: zlib.crc32(name.encode()))  # so that the first are like all
    chosen = chosen[: options.sample]
    if not chosen:
        parser.error(no_case(" ".join(options.patterns), names))
    requests = [(name, way) for name in chosen for way in ways]
    workers = [CaseProcess(_serve) for _ in range(min(options.jobs, len(requests)))]
    found: dict[str, dict[str, tuple[Ending, str]]] = {way: {} for way in ways}
    for _, (name, way), answer in run_side_by_side(workers, requests, options.seconds):
        lost = isinstance(answer, CaseLost)
        found[way][name] = (Ending.FAILED, str(answer)) if lost else answer
        if found[way][name][0] in (Ending.WRONG, Ending.FAILED):
            print(f"{way} {name}: {': '.join(found[way][name])}", flush=True)
        if options.json and len(found[way]) % 20 == 0:
            write(options.json, found)
    for way in ways:
        print(f"{way}: {summary(found[way])}")
    if options.json:
        write(options.json, found)
    return int(any(ending == Ending.WRONG for way in ways for ending, _ in found[way].values()))


def counts_of(found: dict[str, tuple[Ending, str]]) -> Counter[Ending]:
    return Counter(ending for ending, _ in found.values())


def summary(found: dict[str, tuple[Ending, str]]) -> str:
    """Return a line that says how many ops ended how."""
    counts = counts_of(found)
    taken = sum(counts[ending] for ending in TAKEN)
    share = 100 * counts[Ending.RIGHT] / max(taken, 1)
    rest = ", ".join(f"{counts[ending]} {ending}" for ending in Ending if ending != Ending.RIGHT)
    return f"{counts[Ending.RIGHT]} of {taken} right ({share:.1f} %) of {len(found)} ops; {rest}"


def write(path: Path, found: dict[str, dict[str, tuple[Ending, str]]]) -> None:
    """Write the counts as JSON, and reasons why ops are not right."""
    table: dict[str, Any] = {"from": provenance(("torch", "onnxscript", "onnx"))}
    for way, own in found.items():
        counts = counts_of(own)
        table[way] = {
            "ops": len(own),
            "taken by eager and the exporter": sum(counts[ending] for ending in TAKEN),
            **{str(ending): counts[ending] for ending in Ending},
            "others": {
                name: f"{ending}: {why}" if why else str(ending)
                for name, (ending, why) in sorted(own.items())
                if ending != Ending.RIGHT
            },
        }
    path.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
