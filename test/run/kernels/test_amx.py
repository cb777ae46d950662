"""Products by AMX: by the processor's tile registers where it has them, and by functions."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, bf16, f32, i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.rewriter import Rewriter

from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.amx.products import AMX
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.host.codegen.compiler import compile_kernel
from braid.support.worker_process import WorkerProcess
from braid.targets.kernels.kernel_family import LEVELS, Kernel
from braid.targets.machines.cpus import cpu_machine
from braid.tuning.timing import TimingRequest, stored_arguments
from braid.tuning.timing_worker import WORKER
from test.machines import AVX512, HOST
from test.run.kernels import conftest, test_bytes, test_halves
from test.run.kernels.conftest import candidate_of, make_group
from test.run.kernels.test_bytes import I8, U8, bytes_of, scales, types_of
from test.schedules import emitted

SAPPHIRE_RAPIDS = cpu_machine("sapphirerapids")
RNG = np.random.default_rng(5)
_NAME = "llvm.x86."
_OPERANDS = ("tile", "tdp", "ldtilecfg")


def by_functions(kernel: Kernel) -> Kernel:
    """`kernel` with calls of the functions of `tile_registers.c` for the instructions."""
    module = kernel.module.clone()
    declared: dict[str, func.FuncOp] = {}
    for op in list(module.walk()):
        if not isinstance(op, CallIntrinsicOp):
            continue
        name = op.intrin.data.removeprefix(_NAME)
        if not name.startswith(_OPERANDS):
            continue
        types = [operand.type for operand in op.operands]
        symbol = f"emulated_{name}"
        declared.setdefault(symbol, func.FuncOp.external(symbol, types, []))
        Rewriter.replace_op(op, func.CallOp(symbol, list(op.operands), []))
    assert declared and "amx-tile" in kernel.features
    module.body.block.add_ops(declared.values())
    return replace(kernel, module=module)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """`tile_registers.c`, where kernels find its functions."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("amx") / "tile_registers.so"
    source = Path(__file__).parent / "tile_registers.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", library], check=True)
    return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


@pytest.fixture(params=["instructions", "functions"], autouse=True)
def registers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the registers that kernels use."""
    if HOST.architecture != "x86_64":
        pytest.skip("kernels of x86 run on x86")
    if request.param == "functions":
        request.getfixturevalue("functions")
        monkeypatch.setattr(conftest, "CallableKernel", lambda k: CallableKernel(by_functions(k)))
    elif not {"amx-int8", "amx-bf16"} <= set(HOST.enabled_features):
        pytest.skip("this CPU has no tile registers")
    yield request.param


PRODUCTS = [(1, 1, 1), (16, 64, 16), (17, 64, 33), (33, 70, 65), (40, 200, 100), (5, 13, 49)]
PRODUCTS += [tuple(int(extent) for extent in RNG.integers(1, 90, 3)) for _ in range(3)]


@pytest.mark.parametrize("shape", PRODUCTS)
def test_products_of_bytes(check, shape) -> None:
    m, k, n = shape
    bias = RNG.integers(-9999, 9999, (1, n)).astype(np.int32)
    arrays = [bytes_of(U8, m, k), bytes_of(I8, k, n), bias, *scales(1, n)]
    build, family = test_bytes.product, GemmFamily(SAPPHIRE_RAPIDS, AMX)
    check(family, types_of(arrays), build, choices=[0, 3], arrays=arrays)


@pytest.mark.parametrize("a", [U8, I8], ids=["u8", "i8"])
@pytest.mark.parametrize("b", [U8, I8], ids=["u8", "i8"])
def test_signs(check, a, b) -> None:
    def build(x, y):
        op = MatmulOp.on(x, y, accumulator=i32)
        return [op], [op.output]

    arrays = [bytes_of(a, 2, 5, 72), bytes_of(b, 1, 72, 35)]
    family = GemmFamily(SAPPHIRE_RAPIDS, AMX)
    check(family, types_of(arrays), build, choices=[1], arrays=arrays)


@pytest.mark.parametrize("shape", PRODUCTS)
def test_products_of_halves(check, monkeypatch, shape) -> None:
    m, k, n = shape
    types = [TensorType(bf16, (m, k)), TensorType(bf16, (k, n)), TensorType(f32, (1, n))]
    monkeypatch.setattr(check, "tolerance", 4e-3)  # of the rounded result
    check(GemmFamily(SAPPHIRE_RAPIDS, AMX), types, test_halves.product, choices=[0, 2])


def test_all_schedules(check) -> None:
    """Schedules of every level: blocks of all shapes, and tiles of fewer rows in both orders of the
    grid."""
    shape = (82, 96, 70)
    types = [TensorType(bf16, shape[:2]), TensorType(bf16, shape[1:])]

    def build(a, b):
        op = MatmulOp.on(a, b, accumulator=f32)
        return [op], [op.output]

    family, blocks = GemmFamily(SAPPHIRE_RAPIDS, AMX), dict[tuple[int, int], int]()
    offered = candidate_of(family, make_group(types, build)).layouts
    for number, choice in enumerate(offered):
        candidate = candidate_of(family, make_group(types, build, choice))
        for level in range(LEVELS):
            for schedule in candidate.space(level):
                assert candidate.supports_schedule(schedule)
                block = schedule.row_tiles, schedule.column_tiles
                place = blocks.setdefault(block, len(blocks))
                # Every block meets both orders and both steps, and all of these meet each other;
                # each in every second layout.
                is_mixed = (schedule.steps < 16) == schedule.columns_outside
                is_drawn = is_mixed == (place % 2 == 0) and (place // 2 + number) % 2 == 0
                if schedule.rows < 16 and is_drawn:
                    check(family, types, build, choices=[number], schedule=schedule)
    assert set(blocks) == {
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 1),
        (2, 2),
        (3, 1),
        (4, 1),
        (5, 1),
        (6, 1),
    }


@pytest.mark.parametrize(
    ("channels", "filters", "size", "stride", "groups"),
    [(3, 20, 3, 2, 1), (8, 64, 1, 1, 1), (16, 33, 3, 1, 1), (7, 5, 2, 1, 1), (16, 64, 3, 1, 2)],
)
@pytest.mark.parametrize("is_float", [False, True], ids=["bytes", "halves"])
def test_convolutions(check, channels, filters, size, stride, groups, is_float) -> None:
    family = ConvDirectFamily(SAPPHIRE_RAPIDS, AMX)
    shapes = (2, channels, 9, 18), (filters, channels // groups, size, size)
    if is_float:
        types = [TensorType(bf16, shape) for shape in shapes]
        check(family, types, test_halves.convolution(stride, groups))
        return
    bias = RNG.integers(-999, 999, (1, filters, 1, 1)).astype(np.int32)
    arrays = [bytes_of(U8, *shapes[0]), bytes_of(I8, *shapes[1])]
    arrays += [bias, *scales(1, filters, 1, 1)]
    build = test_bytes.convolution(stride, 1, groups)
    check(family, types_of(arrays), build, arrays=arrays)


@pytest.mark.parametrize("extents", [(31,), (7, 5, 9)], ids=["lines", "volumes"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolutions_of_other_ranks(check, extents, dilation) -> None:
    dims, filters = len(extents), 20
    window = (3, 2, 2)[:dims]
    arrays = [
        bytes_of(U8, 2, 8, *extents),
        bytes_of(I8, filters, 8, *window),
        RNG.integers(-999, 999, (1, filters, *[1] * dims)).astype(np.int32),
        *scales(1, filters, *[1] * dims),
    ]
    build = test_bytes.convolution(1, dilation, 1, dims)
    check(ConvDirectFamily(SAPPHIRE_RAPIDS, AMX), types_of(arrays), build, arrays=arrays)


def test_residuals_in_place(check) -> None:
    """The last tile of rows begins within the one before, whose sums are not added twice."""

    def build(a, b, residual):
        op = MatmulOp.on(a, b, accumulator=i32)
        total = elementwise("add", op.output, residual)
        return [op, total], [total.output]

    arrays = [bytes_of(U8, 37, 64), bytes_of(I8, 64, 20)]
    arrays.append(RNG.integers(-999, 999, (37, 20)).astype(np.int32))
    group = make_group(types_of(arrays), build)
    family = GemmFamily(SAPPHIRE_RAPIDS, AMX)
    choice = candidate_of(family, group).layouts[0]
    kernel = emitted(candidate_of(family, make_group(types_of(arrays), build, choice)))
    assert kernel.in_place
    check(family, types_of(arrays), build, arrays=arrays)


def test_other_machines_have_none() -> None:
    arrays = [bytes_of(U8, 4, 8), bytes_of(I8, 8, 16)]

    def build(a, b):
        op = MatmulOp.on(a, b, accumulator=i32)
        return [op], [op.output]

    group = make_group(types_of(arrays), build)
    assert GemmFamily(AVX512, AMX).match(group) is None
    assert GemmFamily(cpu_machine("sapphirerapids,-amx-int8"), AMX).match(group) is None
    assert GemmFamily(SAPPHIRE_RAPIDS, AMX).match(group) is not None


def test_other_processes_time_them(registers) -> None:
    """Which have to ask for the registers themselves."""
    if registers != "instructions":
        pytest.skip("functions are in this process")
    arrays = [bytes_of(U8, 40, 64), bytes_of(I8, 64, 32)]

    def build(a, b):
        op = MatmulOp.on(a, b, accumulator=i32)
        return [op], [op.output]

    types, family = types_of(arrays), GemmFamily(HOST, AMX)
    choice = candidate_of(family, make_group(types, build)).layouts[0]
    group = make_group(types, build, choice)
    kernel = emitted(candidate_of(family, group))
    arguments = stored_arguments(group, choice)
    request = TimingRequest(
        compile_kernel(kernel), "kernel", kernel.grid, kernel.scratch_bytes, arguments
    )
    worker = WorkerProcess(WORKER)
    try:
        assert worker.ask(request, seconds=60) > 0
    finally:
        worker.close()
