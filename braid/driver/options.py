"""The options of a compilation, each defined once: for `braid.compile` and for the commands."""

import functools
import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from braid.support.checked_keywords import check_names, checks_arguments
from braid.support.errors import BraidError, WrongArgumentError, check_kinds, check_threads
from braid.support.option_names import option_text, with_current_keywords
from braid.support.progress import Progress

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from braid.driver.sources.source_model import Parameters
    from braid.passes.partition.assign_devices import Strategy


@dataclass(frozen=True)
class Option:
    """The meaning of an option, and its form on a command line: `kind` is the type of its value.

    Commands have no option without a `kind`. `metavar` names the value in help texts; it is at
    least `least` and at most `most`. One that `repeats` is given once for each entry. Its name on a
    command line is defined by `braid.support.option_names`.
    """

    meaning: str
    kind: type | None = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    repeats: bool = False


def _option(meaning: str, kind: type | None = None, **how: Any) -> dict[str, Option]:
    return {"option": Option(meaning, kind, **how)}


def _seconds(meaning: str) -> dict[str, Option]:
    return _option(meaning, float, metavar="SECONDS", least=0)


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The options that a model is compiled with; `options_of` gives the meaning of each."""

    target: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_option(
            "Machine to compile for: a name or a .toml file; by default what the model says "
            "(braid.target), else host.",
            str,
            metavar="TARGET",
        ),
    )
    cpu: str | None = field(
        default=None,
        metadata=_option(
            "CPU of the host to compile for, by LLVM's name, with features where it has others: "
            "haswell, or x86-64-v3,+avxvnni.",
            str,
            metavar="CPU",
        ),
    )
    gpu_arch: str | None = field(
        default=None,
        metadata=_option(
            "Architecture of the target's GPUs: sm_80, sm_90a and others. sm_90a,+tf32, or +tf32 "
            "alone, permits products of f32 to round what they multiply to tf32; +cubin adds "
            "machine code by ptxas.",
            str,
            metavar="ARCH",
        ),
    )
    threads: int = field(
        default=1, metadata=_option("Threads of a run; 0 for all CPUs.", int, metavar="N", least=0)
    )
    shapes: Mapping[str, Sequence[int]] | None = field(
        default=None,
        metadata=_option(
            "Shape of an input with open dims of an ONNX model, such as x=1,3,8.",
            str,
            metavar="NAME=DIMS",
            repeats=True,
        ),
    )
    dims: Mapping[str, int | str] | None = field(
        default=None,
        metadata=_option(
            "Size of an open dim of an ONNX model, by its name, such as batch=4, or the name of "
            "another dim that it always equals.",
            str,
            metavar="DIM=SIZE",
            repeats=True,
        ),
    )
    constants: Mapping[str, object] | None = field(
        default=None,
        metadata=_option(
            "Value of an input of an ONNX model that never changes, such as rate=16000 or "
            "mask=mask.npy; it is no input any more.",
            str,
            metavar="NAME=VALUE",
            repeats=True,
        ),
    )
    state: Mapping[str, str] | None = field(
        default=None,
        metadata=_option(
            "Input that takes the value of an output in the next run, as in past.*=present.*; * "
            "stands for any text. Sessions then append to it in place.",
            str,
            metavar="INPUT=OUTPUT",
            repeats=True,
        ),
    )
    specialize: Sequence[Mapping[str, int]] = field(
        default=(),
        metadata=_option(
            "Frequent sizes of open dims, such as batch=1,sequence=128: specialized code runs at "
            "these, in addition to the code for all sizes.",
            str,
            metavar="DIM=SIZE,…",
            repeats=True,
        ),
    )
    shape_buckets: Mapping[str, Sequence[int]] | None = field(
        default=None,
        metadata=_option(
            "Sizes of open dims to compile for, such as batch=1,2,4;sequence=32,64.",
            str,
            metavar="DIM=SIZES",
            repeats=True,
        ),
    )
    shape_bounds: Mapping[str, int] | None = field(
        default=None,
        metadata=_option(
            "Largest size of an open dim, such as batch=8; inputs are padded up to one of the "
            "sizes that braid chooses.",
            str,
            metavar="DIM=SIZE",
            repeats=True,
        ),
    )
    parameters: "Parameters | str | os.PathLike[str] | None" = field(
        default=None,
        metadata=_option(
            "Weights by key, or a safetensors file with them; they win over the model's."
        ),
    )
    jobs: int | None = field(
        default=None,
        metadata=_option(
            "Processes that compile kernels; by default one a CPU.",
            int,
            metavar="N",
            least=1,
        ),
    )
    profile: bool = field(
        default=False, metadata=_option("Count and time every op when the model runs.", bool)
    )
    use_profile: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_option(
            "Weigh decisions by this profile, as braid run --profile writes it.",
            Path,
            metavar="FILE",
        ),
    )
    unseen: float | None = field(
        default=None,
        metadata=_option(
            "Probability of branches that the profile never saw, by default 0.001.",
            float,
            metavar="P",
            least=0.0,
            most=0.5,
        ),
    )
    memory_budget: int | str | None = field(
        default=None,
        metadata=_option(
            "Recompute what does not fit into SIZE, which the arena and the outputs take "
            "together: bytes, or with a unit as in 512MiB.",
            str,
            metavar="SIZE",
        ),
    )
    recompute: str | None = field(
        default=None,
        metadata=_option(
            "Recompute tensors above thresholds: 'tensor-threshold=64MiB peak-threshold=1GiB'; "
            "see select-rematerialization. Thresholds by which the model takes more memory are "
            "left out.",
            str,
            metavar="THRESHOLDS",
        ),
    )
    measure_orders: float | None = field(
        default=None,
        metadata=_seconds(
            "Time orders of ops instead of estimating them, and begin none after so long."
        ),
    )
    inter_op_threads: int = field(
        default=1,
        metadata=_option(
            "Run kernels that do not need each other side by side, on up to this many threads; run "
            "the model on as many.",
            int,
            metavar="N",
            least=1,
        ),
    )
    order_seconds: float | None = field(
        default=None,
        metadata=_seconds(
            "For chips: how long to search the order of each subgraph; by default 1."
        ),
    )
    partition: "Strategy | None" = field(
        default=None,
        metadata=_option(
            "How ops are assigned to the devices of the target: by priority (the default: its "
            "mapping lists), latency (of a request) or throughput (of a stream).",
            str,
            metavar="STRATEGY",
        ),
    )
    pin: Sequence[str] = field(
        default=(),
        metadata=_option(
            "Run the op of this name, or all of a kind, on a device or backend: conv1=npu:0, "
            "op:conv=npu.",
            str,
            metavar="WHAT=WHERE",
            repeats=True,
        ),
    )
    integers: bool = field(
        default=True,
        metadata=_option(
            "Compute with the integers of quantized models, or with the real numbers they stand "
            "for.",
            bool,
        ),
    )
    emulate: bool = field(
        default=False,
        metadata=_option(
            "Run what is for missing devices, and backends that are not installed, on the host, "
            "no faster than the target says.",
            bool,
        ),
    )
    load: bool = field(
        default=True,
        metadata=_option(
            "Load the model into this process; one that is not loaded can only be saved."
        ),
    )
    kernels: str | None = field(
        default=None,
        metadata=_option(
            "Source of kernels: generated by braid; a vendor's library (oneDNN, OpenBLAS) wherever "
            "it has one; the best of both, as measured by braid tune; or generic code without "
            "kernel families. By default generated, with untuned best. Code that calls a library "
            "needs it wherever it runs.",
            str,
            metavar="WHOSE",
        ),
    )
    numerics: str | None = field(
        default=None,
        metadata=_option(
            "fast: also algorithms whose sums cancel, such as Winograd's, and scales in weights; "
            "strict: none of these. By default the value of BRAID_NUMERICS, else fast.",
            str,
            metavar="HOW",
        ),
    )
    precision: str | None = field(
        default=None,
        metadata=_option(
            "bf16: products by weights are made of bf16, with sums in f32, where the CPU does so "
            "faster; model: in the model's types. By default the value of BRAID_PRECISION, else "
            "model.",
            str,
            metavar="TYPE",
        ),
    )
    untuned: str = field(
        default="default",
        metadata=_option(
            "Kernels without a record of braid tune: with the default schedule (default), of a "
            "vendor's library where it has one (library), the fastest of both and of few other "
            "schedules, which are measured (probe), or searched as by braid tune (tune).",
            str,
            metavar="HOW",
        ),
    )
    untuned_seconds: float = field(
        default=600.0,
        metadata=_seconds("The most seconds in which untuned begins further searches."),
    )
    cache: bool = field(
        default=True,
        metadata=_option(
            "Use the compilation cache: what was compiled from the same model and options is "
            "loaded, and new results are kept.",
            bool,
        ),
    )
    progress: Callable[[Progress], object] | None = field(
        default=None,
        metadata=_option(
            "Called on this thread with a braid.Progress after each step of the compilation; what "
            "it raises ends that."
        ),
    )
    passes: "str | Sequence[ModulePass] | None" = field(
        default=None,
        metadata=_option(
            "Passes, or their text such as canonicalize,cse, instead of the default pipeline."
        ),
    )

    def check(self) -> None:
        """Raise BraidError for numbers and times out of range, and for other types."""
        check_threads(self.threads, option_text("threads"))
        check_threads(self.inter_op_threads, option_text("inter_op_threads"), least=1)
        if self.jobs is not None:
            check_threads(self.jobs, option_text("jobs"), least=1)
        for name in ("measure_orders", "order_seconds", "untuned_seconds"):
            _check_seconds(option_text(name), getattr(self, name))
        if self.progress is not None and not callable(self.progress):
            raise BraidError(f"progress is {self.progress!r:.200}, expected a function")
        if not isinstance(cast(object, self.target), str | os.PathLike | None):
            raise BraidError(
                f"{option_text('target')} is {self.target!r:.200}, expected the name of a target "
                "or the path of one",
                hint=f"such as {option_text('target', 'host')} or "
                f"{option_text('target', 'machine.toml')}",
            )

        def given(*names: str) -> dict[str, object]:
            return {option_text(name): getattr(self, name) for name in names}

        check_kinds(
            texts=given("cpu", "gpu_arch", "recompute"),
            paths=given("use_profile"),
            flags=given("profile", "integers", "emulate", "load", "cache"),
        )


DEFAULTS = CompileOptions()


def options_of() -> dict[str, Option]:
    """Return the description of each option, by its keyword."""
    return {each.name: each.metadata["option"] for each in fields(CompileOptions)}


_P = ParamSpec("_P")
_Source = TypeVar("_Source")
_Result = TypeVar("_Result")
_Options = TypeVar("_Options")


def takes_keywords(
    options: Callable[_P, _Options],
) -> Callable[
    [Callable[[_Source, _Options], _Result]], Callable[Concatenate[_Source, _P], _Result]
]:
    """Let a function of a source and options have a keyword for each option instead.

    Its signature and its docstring then tell them.
    """

    known = inspect.signature(options).parameters

    def decorated(
        function: Callable[[_Source, _Options], _Result],
    ) -> Callable[Concatenate[_Source, _P], _Result]:
        called_as = f"braid.{function.__name__}"

        @functools.wraps(function)
        def called(source: _Source, *args: _P.args, **keywords: _P.kwargs) -> _Result:
            current = with_current_keywords(keywords)
            _check_keywords(called_as, args, current, known)
            return function(source, cast(Callable[..., _Options], options)(**current))

        own = inspect.signature(function)
        first, *_ = own.parameters.values()
        called.__signature__ = own.replace(parameters=[first, *known.values()])  # pyright: ignore[reportAttributeAccessIssue]
        listed = "\n".join(f"    {n}: {o.meaning}" for n, o in options_of().items())
        called.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{listed}\n"
        return checks_arguments(called_as)(called)

    return decorated


def _check_keywords(
    called: str, given: Sequence[object], keywords: Iterable[str], known: Collection[str]
) -> None:
    """Raise WrongArgumentError for positional arguments and unknown keywords."""
    if given:
        raise WrongArgumentError(
            f"{called} takes a model, and options by keyword; it was given {len(given)} "
            "more by position",
            hint=f"such as {option_text('target', 'host')}",
        )
    check_names(called, keywords, known)


def _check_seconds(name: str, value: object) -> None:
    """Raise BraidError unless `value` is a time that is not negative, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= cast(float, value) < math.inf:
        raise BraidError(f"{name} is {value!r}, expected a number of seconds")
