"""The compiler as a function: from a model in any form to one that can be called."""

import os
from collections.abc import Sequence
from functools import partial

from xdsl.passes import ModulePass

from braid.arguments import as_passes, as_target, check_seconds
from braid.dynamic_shapes.open_model import Bounds, Buckets
from braid.emulation import emulating_backends
from braid.execution.elsewhere import (
    ElsewhereExecutor,
    missing_here,
)
from braid.execution.executors import Executor, NativeExecutor, check_threads
from braid.graph_pipeline import Decisions
from braid.lower_source import Lowering
from braid.lowered_model import LoweredModel, package_of
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.descriptor import SYMBOL
from braid.memory_budget import parse_budget
from braid.model import Model, Package
from braid.on_miss import ON_MISS_SECONDS, MissRule
from braid.passes.partition.assign_devices import Strategy
from braid.read_source import ModelSource, Shapes, read_source
from braid.runtime.native import NativeModel, emulating, register_plugins
from braid.sources.source_model import Parameters
from braid.support.errors import check_kinds
from braid.support.forks import compiling
from braid.support.shared_objects import need_libraries
from braid.targets.numerics import with_numerics
from braid.universe import make_context


@compiling()
def compile(
    source: ModelSource,
    *,
    target: str | os.PathLike[str] | None = None,
    cpu: str | None = None,
    gpu_arch: str | None = None,
    threads: int = 1,
    shapes: Shapes | None = None,
    shape_buckets: Buckets | None = None,
    shape_bounds: Bounds | None = None,
    parameters: Parameters | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    profile: bool = False,
    use_profile: str | os.PathLike[str] | None = None,
    unseen: float | None = None,
    memory_budget: int | str | None = None,
    recompute: str | None = None,
    measure_orders: float | None = None,
    inter_op_threads: int = 1,
    order_seconds: float | None = None,
    partition: Strategy | None = None,
    pin: Sequence[str] = (),
    integers: bool = True,
    emulate: bool = False,
    load: bool = True,
    kernels: str | None = None,
    numerics: str | None = None,
    precision: str | None = None,
    on_miss: str = "default",
    on_miss_seconds: float = ON_MISS_SECONDS,
    passes: str | Sequence[ModulePass] | None = None,
) -> Model:
    """Compile a model for a target and load it into this process.

    A model for a CPU that this one cannot stand for is not loaded: it can only be saved.

    `target` is the name of a target or the path of its file, by default what the module says by
    `braid.target`, else `host`; `cpu` is another CPU for its host, by LLVM's name (`haswell`, or
    `x86-64-v3,+avxvnni` with features), and `gpu_arch` another architecture of its GPUs (`sm_90a`).

    `source` is the path of an `.onnx` or `.mlir` file, the contents of one as `bytes`, an
    `onnx.ModelProto`, or a module, which is left as it is. `threads` is the number of threads of
    each run (0: all CPUs), `jobs` the number of processes that compile kernels (by default one a
    CPU). `shapes` fixes open dims of an ONNX model's inputs; `shape_buckets={"batch": [1, 2, 4]}`
    compiles for each of these sizes of the open dim, and `shape_bounds={"batch": 8}` for sizes that
    braid chooses, from which all up to 8 are padded. `parameters` gives weights by key, or a
    safetensors file with them. With `profile`, `Model.profile` tells how often each op ran and for
    how long; `use_profile` is a file with such a profile (`braid run --profile`), by which
    decisions are weighted, with branches that it never saw at the probability `unseen`, by default
    0.001. `memory_budget` (bytes, or text such as `512MiB`) bounds what the arena and the outputs
    take together: what does not fit is recomputed. `recompute` are thresholds above which tensors
    are recomputed in any case, such as `tensor-threshold=64MiB`. With `measure_orders`, orders of
    ops are timed on this machine, and none is begun after so many seconds. With `inter_op_threads`,
    kernels that do not need each other run side by side on up to so many threads, and the model
    runs on no fewer threads than that. `order_seconds` is how long the order of each subgraph of a
    chip is searched, by default 1. On a target with several devices, `partition` is the strategy by
    which ops are assigned to them: `priority` (the mapping lists of the target, the default),
    `latency` or `throughput`; `pin` says where some run (`conv1=npu:0` by name, `op:conv=npu` by
    kind). Quantized models compute with integers unless `integers` is false. With `emulate`,
    functions for devices that are missing, and of backends that are not installed, run on the host,
    no faster than the target says. A model that is not to `load` needs no devices here, and can
    only be saved. `kernels` are `generated` by braid, those of a vendor's `library` (oneDNN
    or OpenBLAS, where one is installed and has it), or the `best`, by what `braid tune` has
    measured: the model then needs the library wherever it runs. `numerics` are `fast`, by default,
    or `strict`, without algorithms whose results differ from the exact ones by more than another
    order of sums (Winograd's). With `precision="bf16"` products by weights are made of bf16
    numbers, with sums in f32, where the CPU does so faster. `on_miss` says what a kernel gets of
    which no search is recorded: the `default`, the `library`'s, the fastest of these and few
    others, which are measured (`probe`), or what `braid tune` finds (`tune`), for at most
    `on_miss_seconds`; `kernels` are the best then, if nothing else is said. `Model.kernels` tells
    how many had a record. `passes`, or their text such as `"canonicalize,cse"`, run instead of
    the default pipeline.

    Raises:
        BraidError: the model cannot be read, is not valid, or needs what braid has not.
        InfeasibleError: it cannot run within the memory budget.

    """
    _check_numbers(threads, inter_op_threads, jobs, measure_orders, order_seconds)
    check_kinds(
        texts={"cpu": cpu, "gpu_arch": gpu_arch, "recompute": recompute},
        paths={"use_profile": use_profile},
        flags={"profile": profile, "integers": integers, "emulate": emulate, "load": load},
    )
    check_seconds("on_miss_seconds", on_miss_seconds)
    miss = MissRule.of(on_miss, on_miss_seconds)
    budget = None if memory_budget is None else parse_budget(memory_budget)
    chosen = None if passes is None else as_passes(passes)
    context = make_context()
    read = partial(
        read_source,
        context,
        source,
        target=as_target(target),
        cpu=cpu,
        gpu_arch=gpu_arch,
        shapes=shapes,
        parameters=parameters,
        buckets=shape_buckets,
        bounds=shape_bounds,
    )
    decisions = Decisions(
        recompute=recompute,
        order_seconds=order_seconds,
        jobs=jobs,
        use_profile=use_profile,
        unseen=unseen,
        partition=partition,
        pin=pin,
        integers=integers,
        measure_orders=measure_orders,
        inter_op_threads=inter_op_threads,
        on_miss=miss,
    )
    lowering = Lowering(context, read, decisions, profile)
    with (
        emulating_backends(emulate),
        with_numerics(numerics, precision),
        miss.kernels_from(kernels),
    ):
        lowered = lowering.within(budget, chosen)
    return _load(lowered, threads, emulate) if load else _packaged(lowered)


def _check_numbers(
    threads: int,
    inter_op_threads: int,
    jobs: int | None,
    measure_orders: float | None,
    order_seconds: float | None,
) -> None:
    """Raises BraidError for counts and times that there cannot be."""
    check_threads(threads)
    check_threads(inter_op_threads, "inter_op_threads", least=1)
    if jobs is not None:
        check_threads(jobs, "jobs", least=1)
    check_seconds("measure_orders", measure_orders)
    check_seconds("order_seconds", order_seconds)


def _load(lowered: LoweredModel, threads: int, emulate: bool) -> Model:
    """The model in this process, which runs on so many threads, if its code is for this machine."""
    machine, code = lowered.target.host_device.machine, lowered.code
    if (reason := missing_here(machine)) is not None:
        return _packaged(
            lowered,
            f"the model is compiled for CPU '{machine.name}' and cannot run here: {reason}",
            "save it and run it there, or compile it without a CPU",
        )
    package = package_of(lowered)
    need_libraries(code.libraries, "the model")
    loaded = load_objects(code.objects)
    if package.manifest.runs_on:
        register_plugins()
    with emulating(emulate):
        native = NativeModel.from_descriptor(loaded.address(SYMBOL), package.weights, loaded)
    streams = code.description.inter_op_streams
    executor = NativeExecutor(native, max(threads, streams) if threads else 0)
    return _model(package, executor, lowered)


def _packaged(
    lowered: LoweredModel,
    reason: str = "the model was compiled to be saved, not to run",
    hint: str = "compile it without load=False, or load what is saved",
) -> Model:
    """The model to be saved."""
    return _model(package_of(lowered), ElsewhereExecutor(reason, hint), lowered)


def _model(package: Package, executor: Executor, lowered: LoweredModel) -> Model:
    manifest = package.manifest
    return Model(
        manifest.inputs,
        manifest.outputs,
        executor,
        manifest.arena_bytes,
        package,
        lowered.memory,
        lowered.kernels,
    )


def emit_model(
    source: ModelSource,
    stage: str,
    *,
    target: str | None = None,
    cpu: str | None = None,
    gpu_arch: str | None = None,
    shapes: Shapes | None = None,
    shape_buckets: Buckets | None = None,
    shape_bounds: Bounds | None = None,
    jobs: int | None = None,
    profile: bool = False,
    use_profile: str | os.PathLike[str] | None = None,
    unseen: float | None = None,
    order_seconds: float | None = None,
    recompute: str | None = None,
    partition: Strategy | None = None,
    pin: Sequence[str] = (),
    integers: bool = True,
    kernels: str | None = None,
    numerics: str | None = None,
    precision: str | None = None,
    on_miss: str = "default",
    on_miss_seconds: float = ON_MISS_SECONDS,
    emulate: bool = False,
) -> str | bytes:
    """Return the model at a stage of its lowering: mlir, linalg, llvm, asm (text), obj (bytes).

    The backends of the target may have further ones; the others are as for `compile`.

    Raises:
        BraidError: as `compile`, or there is no such stage.

    """
    if jobs is not None:
        check_threads(jobs, "jobs", least=1)
    check_seconds("on_miss_seconds", on_miss_seconds)
    miss = MissRule.of(on_miss, on_miss_seconds)
    context = make_context()

    read = partial(
        read_source,
        context,
        source,
        target=target,
        cpu=cpu,
        gpu_arch=gpu_arch,
        shapes=shapes,
        buckets=shape_buckets,
        bounds=shape_bounds,
    )
    decisions = Decisions(
        recompute=recompute,
        order_seconds=order_seconds,
        jobs=jobs,
        use_profile=use_profile,
        unseen=unseen,
        partition=partition,
        pin=pin,
        integers=integers,
        on_miss=miss,
    )
    with (
        emulating_backends(emulate),
        with_numerics(numerics, precision),
        miss.kernels_from(kernels),
    ):
        return Lowering(context, read, decisions, profile).at_stage(stage)
