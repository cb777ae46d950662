"""The compiler as a function: from a model in any form to one that can be called.

What was compiled before is loaded, and nothing of the compiler imported for it.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from braid.driver.compile import compile_or_load
from braid.driver.options import ON_MISS_SECONDS, CompileOptions
from braid.runtime.model import Model
from braid.support.errors import check_kinds

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from braid.driver.read_source import ModelSource, Shapes
    from braid.driver.sources.open_model import Bounds, Buckets
    from braid.driver.sources.source_model import Parameters
    from braid.passes.partition.assign_devices import Strategy


def compile(
    source: "ModelSource",
    *,
    target: str | os.PathLike[str] | None = None,
    cpu: str | None = None,
    gpu_arch: str | None = None,
    threads: int = 1,
    shapes: "Shapes | None" = None,
    shape_buckets: "Buckets | None" = None,
    shape_bounds: "Bounds | None" = None,
    parameters: "Parameters | str | os.PathLike[str] | None" = None,
    jobs: int | None = None,
    profile: bool = False,
    use_profile: str | os.PathLike[str] | None = None,
    unseen: float | None = None,
    memory_budget: int | str | None = None,
    recompute: str | None = None,
    measure_orders: float | None = None,
    inter_op_threads: int = 1,
    order_seconds: float | None = None,
    partition: "Strategy | None" = None,
    pin: Sequence[str] = (),
    integers: bool = True,
    emulate: bool = False,
    load: bool = True,
    kernels: str | None = None,
    numerics: str | None = None,
    precision: str | None = None,
    on_miss: str = "default",
    on_miss_seconds: float = ON_MISS_SECONDS,
    cache: bool = True,
    passes: "str | Sequence[ModulePass] | None" = None,
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
    are recomputed in any case, such as `tensor-threshold=64MiB`; they are left out, with a warning,
    where the model would take more memory by them than without. With `measure_orders`, orders of
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
    measured: the model then needs the library wherever it runs; or `generic`, of no kernel family.
    `numerics` are `fast`, by default, or `strict`, without algorithms whose results differ from the
    exact ones by more than another order of sums (Winograd's), and without scales that are folded
    into weights. With `precision="bf16"` products by weights are made of bf16
    numbers, with sums in f32, where the CPU does so faster. `on_miss` says what a kernel gets of
    which no search is recorded: the `default`, the `library`'s, the fastest of these and few
    others, which are measured (`probe`), or what `braid tune` finds (`tune`), for at most
    `on_miss_seconds`; `kernels` are the best then, if nothing else is said. `Model.kernels` tells
    how many had a record. `passes`, or their text such as `"canonicalize,cse"`, run instead of
    the default pipeline.

    What is compiled of a file or of bytes is kept as an artifact in the user's cache
    (`$BRAID_CACHE_DIR`), and is loaded when the same model is compiled with the same options, by
    the same installation for the same machine. The file is mapped as long as the model is there,
    and must not be changed. Nothing is kept with `cache=False`, where `passes`, `kernels`,
    `on_miss`, `order_seconds` or `measure_orders` are given, weights as arrays, or `emulate`, of
    models that name other files or are warned of, and where this process itself adds to the
    compiler.

    Raises:
        BraidError: the model cannot be read, is not valid, or needs what braid has not.
        InfeasibleError: it cannot run within the memory budget.

    """
    check_kinds(flags={"cache": cache})
    options = CompileOptions(
        target=target,
        cpu=cpu,
        gpu_arch=gpu_arch,
        threads=threads,
        shapes=shapes,
        shape_buckets=shape_buckets,
        shape_bounds=shape_bounds,
        parameters=parameters,
        jobs=jobs,
        profile=profile,
        use_profile=use_profile,
        unseen=unseen,
        memory_budget=memory_budget,
        recompute=recompute,
        measure_orders=measure_orders,
        inter_op_threads=inter_op_threads,
        order_seconds=order_seconds,
        partition=partition,
        pin=pin,
        integers=integers,
        emulate=emulate,
        load=load,
        kernels=kernels,
        numerics=numerics,
        precision=precision,
        on_miss=on_miss,
        on_miss_seconds=on_miss_seconds,
        passes=passes,
    )
    return compile_or_load(source, options, cache=cache)
