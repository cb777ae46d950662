"""Kernels of the CPU families against oneDNN and numpy (OpenBLAS), interleaved, on one thread.

``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.kernels [--json out.json]``
prints, per shape, Gflop/s and the part of the peak (that of a small GEMM which stays in the
cache), and how many times as fast as the others braid's kernel is. Times are the least of all
runs, of CPU time of the thread. With `--bytes`, products of bytes alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from benchmarks import onednn
from benchmarks.command import UsageError, run_command
from benchmarks.provenance import provenance
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import TensorOp, element_type_of, integers
from braid.dialects.braid.buffer import ALIGNMENT
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.amx.products import AMX
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from braid.lowering.cpu.kernels.conv_winograd import ConvWinogradFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.targets.kernels.kernel_family import Candidate, KernelFamily
from braid.targets.machines.cpus import NATIVE, cpu_machine

Build = Callable[..., TensorOp]
Run = Callable[[], None]

HOST = cpu_machine(NATIVE)
GEMM = (
    # BERT-base and -large at 128 tokens, ViT, GPT-2 at 64 tokens
    (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (128, 1024, 1024), (128, 4096, 1024),
    (197, 768, 768), (197, 3072, 768), (64, 2304, 768), (64, 768, 3072), (64, 50257, 768),
    # pointwise convolutions of ResNet-50 and MobileNetV2
    (3136, 64, 256), (784, 512, 128), (196, 1024, 256), (49, 2048, 512), (3136, 144, 24),
    # square ones, and classifiers on one and eight images
    (64, 64, 64), (256, 256, 256), (512, 512, 512), (1, 1000, 2048), (8, 1000, 1280),
)  # fmt: skip
"""m, n, k of usual products."""

ODD_GEMM = (
    (127, 769, 767), (129, 3071, 769), (131, 767, 3067), (61, 61, 61), (255, 257, 259),
    (509, 509, 509), (13, 1021, 509), (7, 997, 1279), (197, 773, 761), (3, 3001, 777),
    (49, 1031, 521), (783, 131, 127), (3137, 67, 251), (33, 33, 1023), (1001, 35, 79),
    (95, 101, 2053), (17, 4099, 257), (211, 223, 227), (66, 1543, 389), (5, 97, 4099),
)  # fmt: skip
"""Products of which no side is a multiple of a tile's."""

CONVOLUTIONS = (
    # inputs, outputs, height and width of the input, window, stride, padding
    (3, 64, 224, 7, 2, 3),
    (64, 64, 56, 1, 1, 0),
    (64, 64, 56, 3, 1, 1),
    (256, 64, 56, 1, 1, 0),
    (128, 128, 28, 3, 1, 1),
    (256, 512, 56, 1, 2, 0),
    (256, 256, 14, 3, 1, 1),
    (1024, 256, 14, 1, 1, 0),
    (512, 512, 7, 3, 1, 1),
    (512, 2048, 7, 1, 1, 0),
    (128, 128, 56, 3, 2, 1),
    (256, 256, 28, 3, 2, 1),
    (512, 512, 14, 3, 2, 1),
    (192, 32, 28, 5, 1, 2),
    (48, 128, 7, 5, 1, 2),
    (64, 64, 28, 7, 1, 3),
)
"""The kinds of layer of ResNet-50, and larger windows as in Inception v1."""

DEPTHWISE = ((32, 112, 1), (96, 112, 2), (144, 56, 1), (576, 14, 1), (960, 7, 1))
"""Channels, height and width of the input, stride: layers of MobileNetV2."""

GROUPED = (
    (4, 272, 68, 28, 1),
    (4, 136, 544, 14, 1),
    (32, 128, 128, 56, 3),
    (32, 256, 256, 28, 3),
    (14, 112, 112, 28, 3),
    (32, 32, 64, 56, 3),
)
"""Groups, channels, height and width, window: layers of ShuffleNet, ResNeXt and RegNet, and one of
two outputs for each channel."""

MOVEMENTS = (
    ("reorder", (1, 3, 224, 224), "abcd", "acdb"),
    ("reorder", (1, 64, 56, 56), "abcd", "acdb"),
    ("reorder", (1, 64, 56, 56), "acdb", "abcd"),
    ("reorder", (1, 64, 56, 56), "abcd", "aBcd16b"),
    ("reorder", (1, 512, 7, 7), "acdb", "abcd"),
    ("reorder", (1, 64, 224, 224), "abcd", "acdb"),
    ("reorder", (1, 64, 224, 224), "acdb", "abcd"),
)
"""Logical shape, layouts of source and target."""


@dataclass(frozen=True)
class Measurement:
    """Seconds by contender; `work` is in flop, or in bytes where `unit` says so."""

    name: str
    work: float
    unit: str
    seconds: dict[str, float]


def match(family: KernelFamily, group: FusedOp) -> Candidate:
    """Return what the family finds in a group that it takes."""
    found = family.match(group)
    assert found is not None
    return found


def make_kernel(
    family: KernelFamily,
    shapes: Sequence[Sequence[int]],
    build: Build,
    choice: LayoutChoice | None = None,
    kinds: Sequence[Attribute] = (),
) -> Run:
    """Return the family's default kernel in the given or its preferred layouts, on random operands.

    `kinds` are the element types of the operands, if they are not all f32.
    """
    choice = choice or match(family, make_group(shapes, build, None, None, kinds)).layouts[0]
    group = make_group(shapes, build, choice.operands, choice.results[0], kinds)
    candidate = match(family, group)
    kernel = CallableKernel(candidate.emit("kernel", next(candidate.space(0))))
    generator = np.random.default_rng(0)
    types = [to_numpy(element_type_of(value)) for value in (*group.inputs, *group.outputs)]
    arrays = [
        (16 * generator.standard_normal(shape, np.float32)).astype(type)
        for shape, type in zip(shapes, types, strict=False)
    ]
    result = np.zeros(group.outputs[0].type.get_shape(), types[-1])
    pairs = zip((*arrays, result), (*choice.operands, choice.results[0]), strict=True)
    return kernel.bound(*(_aligned(to_storage(array, layout)) for array, layout in pairs))


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy at a multiple of 64 bytes, as models have for weights, arenas and outputs."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def make_group(
    shapes: Sequence[Sequence[int]],
    build: Build,
    operands: Sequence[Layout] | None,
    result: Layout | None,
    kinds: Sequence[Attribute] = (),
) -> FusedOp:
    """One op and what `build` puts after it, in the given layouts or row-major."""
    kinds = kinds or [f32] * len(shapes)
    types = [TensorType(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    if operands is not None:
        types = [with_layout(t, layout) for t, layout in zip(types, operands, strict=True)]
    block = Block(arg_types=types)
    op = build(*block.args)
    return _grouped(block, [op], result)


def _grouped(block: Block, ops: Sequence[TensorOp], result: Layout | None) -> FusedOp:
    """Return the group with `ops` in its body, the last one's result stored in `result`."""
    block.add_ops(ops)
    value: SSAValue = ops[-1].results[0]
    if result is not None:
        value = Rewriter.replace_value_with_new_type(value, with_layout(value.type, result))
    block.add_op(YieldOp(value))
    types = [argument.type for argument in block.args]
    outside = Block(arg_types=types)
    group = FusedOp(outside.args, [value.type], block)
    outside.add_op(group)
    return group


def convolution(stride: int, groups: int = 1, zeros: int = 0) -> Build:
    """Return an unpadded convolution with the same stride and `zeros` on all sides in both dims."""

    def build(x: SSAValue, w: SSAValue) -> ConvOp:
        conv = ConvOp.get(
            x, w, strides=(stride, stride), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0),
            groups=groups,
        )  # fmt: skip
        conv.zeros_low = conv.zeros_high = integers([zeros, zeros])
        return conv

    return build


def pooling(x: SSAValue) -> PoolOp:
    """Return a maximum over 3 × 3 with stride 2."""
    return PoolOp.get(
        x, "max", (3, 3), strides=(2, 2), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
    )


BYTES = (IntegerType(8, Signedness.UNSIGNED), IntegerType(8))
"""Element types of the operands of products of bytes."""

LAYOUTS: tuple[tuple[KernelFamily, tuple[tuple[int, ...], ...], Build], ...] = (
    (ConvDirectFamily(HOST), ((1, 3, 230, 230), (64, 3, 7, 7)), convolution(2)),
    (ConvDirectFamily(HOST), ((1, 64, 58, 58), (64, 64, 3, 3)), convolution(1)),
    (ConvDirectFamily(HOST), ((1, 256, 14, 14), (1024, 256, 1, 1)), convolution(1)),
    (
        ConvDepthwiseFamily(HOST),
        ((1, 144, 58, 58), (144, 1, 3, 3)),
        convolution(1, 144),
    ),
    (PoolFamily(HOST), ((1, 64, 114, 114),), pooling),
)
"""Kernels that are compared in all layouts."""


def time_interleaved(contenders: dict[str, Run], rounds: int) -> dict[str, float]:
    """Return the least CPU seconds of one run of each, in turns, so that all meet the same
    machine."""
    repeats = {name: _repeats(run) for name, run in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            began = time.thread_time()
            for _ in range(repeats[name]):
                run()
            best[name] = min(best[name], (time.thread_time() - began) / repeats[name])
    return best


def _repeats(run: Run) -> int:
    """Return a number of runs that take about 10 ms."""
    run()
    began = time.perf_counter()
    run()
    return max(1, round(0.01 / max(time.perf_counter() - began, 1e-6)))


def measure_gemm(m: int, n: int, k: int, rounds: int) -> Measurement:
    """Measure a matmul of m × k and k × n, with the right operand packed as the contender wants
    it."""
    family, shapes = GemmFamily(HOST), [(m, k), (k, n)]
    plain = match(family, make_group(shapes, MatmulOp.on, None, None))
    # Whoever compiles the model knows the weight and stores it as is cheapest.
    rows = Layout.row_major(2)
    choices = [c for c in plain.layouts if c.operands[0] == c.results[0] == rows]
    choice = min(choices, key=plain.seconds)
    contenders = {"braid": make_kernel(family, shapes, MatmulOp.on, choice)}
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    out = np.empty((m, n), np.float32)
    contenders["numpy"] = lambda: np.matmul(a, b, out=out)
    if onednn.available():
        contenders["onednn"] = onednn.matmul(m, n, k)
    return Measurement(
        f"gemm {m}x{n}x{k}", 2.0 * m * n * k, "flop", time_interleaved(contenders, rounds)
    )


def measure_narrow_gemm(m: int, n: int, k: int, rounds: int) -> Measurement:
    """Measure a matmul of unsigned m × k and signed k × n bytes, in i32, packed as each wants
    it."""
    shapes = [(m, k), (k, n)]
    group = make_group(shapes, _byte_product, None, None, BYTES)
    families = GemmFamily(HOST, LOW_PRECISION), GemmFamily(HOST, AMX)
    _, number, choice = min(
        (candidate.seconds(choice), number, choice)
        for number, family in enumerate(families)
        if (candidate := family.match(group)) is not None
        for choice in candidate.layouts[:1]
    )
    contenders = {"braid": make_kernel(families[number], shapes, _byte_product, choice, BYTES)}
    if onednn.available():
        contenders["onednn"] = onednn.matmul(m, n, k, of_bytes=True)
    seconds = time_interleaved(contenders, rounds)
    return Measurement(f"int8 gemm {m}x{n}x{k}", 2.0 * m * n * k, "flop", seconds)


def _byte_product(a: SSAValue, b: SSAValue) -> MatmulOp:
    return MatmulOp.on(a, b, accumulator=i32)


def measure_convolution(
    family: KernelFamily, sizes: Sequence[int], groups: int, rounds: int
) -> Measurement:
    """Ours reads an input that is padded already, as the pipeline makes it."""
    inputs, outputs, size, window, stride, pad = sizes
    out = (size + 2 * pad - window) // stride + 1
    padded = (1, inputs, size + 2 * pad, size + 2 * pad)
    weight = (outputs, inputs // groups, window, window)
    build = convolution(stride, groups, pad)
    contenders = {"braid": make_kernel(family, [padded, weight], build)}
    if onednn.available():
        split = weight if groups == 1 else (groups, outputs // groups, *weight[1:])
        x, y = (1, inputs, size, size), (1, outputs, out, out)
        contenders["onednn"] = onednn.convolution(x, split, y, stride, pad)
    work = 2.0 * outputs * out * out * inputs // groups * window * window
    name = f"{family.name} {inputs}-{outputs} {size}x{size} {window}x{window}/{stride}"
    return Measurement(name, work, "flop", time_interleaved(contenders, rounds))


def measure_rows(rounds: int) -> list[Measurement]:
    """Memory-bound kernels against numpy's copy of as many bytes."""
    cases: list[tuple[str, KernelFamily, list[tuple[int, ...]], Build]] = [
        (
            "add",
            ElementwiseFamily(HOST),
            [(1024, 4096)] * 2,
            lambda x, y: elementwise("add", x, y),
        ),
        (
            "softmax",
            NormalizationFamily(HOST),
            [(1536, 128)],
            lambda x: SoftmaxOp.get(x, 1),
        ),
        (
            "layer norm",
            NormalizationFamily(HOST),
            [(128, 768), (1, 768), (1, 768)],
            lambda x, s, b: LayerNormOp.get(x, s, b, first_dim=1, epsilon=1e-5),
        ),
    ]
    for function in ("neg", "exp", "erf"):
        for shape in ((128, 3072), (1024, 4096)):
            build = partial(elementwise, function)
            cases.append((function, ElementwiseFamily(HOST), [shape], build))
    results: list[Measurement] = []
    for name, family, shapes, build in cases:
        count = sum(int(np.prod(shape)) for shape in (*shapes, shapes[0]))
        source, target = np.ones(count // 2, np.float32), np.empty(count // 2, np.float32)
        contenders = {
            "braid": make_kernel(family, shapes, build),
            "copy": lambda source=source, target=target: np.copyto(target, source),
        }
        moved = 4.0 * count
        label = f"{name} {'x'.join(map(str, shapes[0]))}"
        results.append(Measurement(label, moved, "byte", time_interleaved(contenders, rounds)))
    return results


def measure_shuffle(rounds: int) -> Measurement:
    """ShuffleNet's permutation of channels in four groups, channels last."""
    shape, last = (1, 272, 28, 28), Layout.parse("acdb")
    split, turned = ReshapeOp.get, TransposeOp.get
    block = Block(arg_types=[with_layout(TensorType(f32, shape), last)])
    ops: list[TensorOp] = [split(block.args[0], (1, 4, 68, 28, 28))]
    ops.append(turned(ops[0].results[0], (0, 2, 1, 3, 4)))
    ops.append(split(ops[1].results[0], shape))
    group = _grouped(block, ops, last)
    kernel = CallableKernel(match(MovementFamily(HOST), group).emit("kernel", {}))
    x, y, a, b = (np.ones(shape, np.float32) for _ in range(4))
    contenders: dict[str, Run] = {
        "braid": kernel.bound(x, y),
        "copy": lambda: np.copyto(b, a),
    }
    seconds = time_interleaved(contenders, rounds)
    return Measurement("shuffle 1x272x28x28 in 4 groups", 8.0 * x.size, "byte", seconds)


def measure_choices(
    family: KernelFamily, shapes: Sequence[Sequence[int]], build: Build, rounds: int
) -> Measurement:
    """One kernel in all pairs of layouts of its input and result; `braid` is the preferred one."""
    plain = make_group(shapes, build, None, None)
    contenders: dict[str, Run] = {}
    for choice in match(family, plain).layouts:
        name = f"{choice.operands[0]}-{choice.results[0]}" if contenders else "braid"
        if name not in contenders:
            contenders[name] = make_kernel(family, shapes, build, choice)
    out = np.prod(plain.outputs[0].type.get_shape())
    work = 2.0 * out * np.prod(shapes[-1][1:] if len(shapes) > 1 else 1)
    label = f"{family.name} {'x'.join(map(str, shapes[0]))} by layout"
    return Measurement(label, work, "flop", time_interleaved(contenders, rounds))


def _reorder(x: SSAValue) -> ReorderOp:
    return ReorderOp.to(x, Layout.row_major(4))


def measure_movement(rounds: int) -> list[Measurement]:
    """Measure copies that permute the innermost dim against numpy's plain copy of as many bytes."""
    results: list[Measurement] = []
    for name, shape, source, target in MOVEMENTS:
        choice = LayoutChoice((Layout.parse(source),), (Layout.parse(target),))
        group = make_group([shape], _reorder, choice.operands, choice.results[0])
        kernel = CallableKernel(match(MovementFamily(HOST), group).emit("kernel", {}))
        array = np.ones(shape, np.float32)
        x, y = (to_storage(array, Layout.parse(tag)) for tag in (source, target))
        a, b = np.ones_like(array), np.ones_like(array)
        contenders: dict[str, Run] = {
            "braid": kernel.bound(x, y),
            "copy": lambda a=a, b=b: np.copyto(b, a),
        }
        label = f"{name} {'x'.join(map(str, shape))}"
        seconds = time_interleaved(contenders, rounds)
        results.append(Measurement(label, 8.0 * array.size, "byte", seconds))
    return results


def peak_flops() -> float:
    """Flop/s of the machine: a GEMM whose operands stay in the cache nearest to the core."""
    m, n, k = 12, 32, 256
    run = make_kernel(GemmFamily(HOST), [(m * 64, k), (k, n)], MatmulOp.on)
    return 2.0 * m * 64 * n * k / time_interleaved({"peak": run}, 20)["peak"]


def show(m: Measurement, peak: float) -> None:
    """One line of the table."""
    rate = m.work / m.seconds["braid"] / 1e9
    part = f"{rate * 1e9 / peak:5.0%} of peak" if m.unit == "flop" else " " * 13
    others = "  ".join(
        f"{m.seconds[name] / m.seconds['braid']:.2f}x {name}"
        for name in m.seconds
        if name != "braid"
    )
    print(f"{m.name:36} {rate:7.1f} G{m.unit}/s  {part}  {others}", flush=True)


def _all(rounds: int) -> Iterator[Measurement]:
    """Everything, one after the other."""
    for shape in (*GEMM, *ODD_GEMM):
        yield measure_gemm(*shape, rounds=rounds)
    for shape in GEMM:
        yield measure_narrow_gemm(*shape, rounds=rounds)
    for sizes in CONVOLUTIONS:
        yield measure_convolution(ConvDirectFamily(HOST), sizes, 1, rounds)
    for sizes in CONVOLUTIONS:
        if sizes[3:5] == (3, 1):
            yield measure_convolution(ConvWinogradFamily(HOST), sizes, 1, rounds)
    for channels, size, stride in DEPTHWISE:
        sizes = (channels, channels, size, 3, stride, 1)
        yield measure_convolution(ConvDepthwiseFamily(HOST), sizes, channels, rounds)
    for groups, inputs, outputs, size, window in GROUPED:
        sizes = (inputs, outputs, size, window, 1, 0)
        few = outputs // groups < ConvGroupedFamily(HOST).unit.lanes
        family = ConvGroupedFamily(HOST) if few else ConvDirectFamily(HOST)
        yield measure_convolution(family, sizes, groups, rounds)
    for family, shapes, build in LAYOUTS:
        yield measure_choices(family, shapes, build, rounds)
    yield from (*measure_rows(rounds), *measure_movement(rounds), measure_shuffle(rounds))


def _product(text: str) -> tuple[int, int, int]:
    m, n, k = map(int, text.split("x"))
    return m, n, k


def main(
    *,
    rounds: int = 7,
    bytes: Annotated[
        Sequence[tuple[int, ...]] | None,
        _product,
        "measure int8 matmuls only, of these shapes, by default the usual ones",
    ] = None,
) -> object:
    """Parse the arguments, measure, print the table."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(variable) != "1":
            raise UsageError(f"set {variable}=1: all contenders run on one thread")
    peak = peak_flops()
    print(f"peak {peak / 1e9:.1f} Gflop/s")
    results: list[Measurement] = []
    wanted = _all(rounds)
    if bytes is not None:
        shapes = bytes or GEMM
        wanted = (measure_narrow_gemm(*shape, rounds=rounds) for shape in shapes)
    for result in wanted:
        show(result, peak)
        results.append(result)
    facts = provenance(("onednn-cpu-gomp", "numpy"))
    return {**facts, "peak_flops": peak, "results": results}


if __name__ == "__main__":
    run_command(main)
