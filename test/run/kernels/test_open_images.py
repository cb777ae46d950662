"""Windows over any number of images: depthwise convolutions, pooling, and Winograd's tiles."""

from typing import Any

import pytest

from braid.analysis.nests.convolution import Convolution, convolution
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.pooling import pooling
from braid.analysis.nests.windows import WindowOp, window_nest
from braid.analysis.nests.winograd import winograd_nest
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, window_kernel
from braid.lowering.cpu.kernels.winograd.kernel import WinogradKernel
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.support.sizes.expression import Extent, symbol
from braid.targets.kernels.kernel_family import Kernel
from test.run.kernels.open_groups import SIZES, OpenKernel, unit
from test.run.kernels.test_open_products import BATCH, choice_of, residual_convolution


def found_convolution(group: FusedOp) -> Convolution:
    found = convolution(group, is_open=True)
    assert found is not None
    return found


def window_code(group: FusedOp, op: WindowOp | None, extents_of: ExtentsOf) -> Kernel:
    assert op is not None
    nest = window_nest(op, stored_choice(group), unit().lanes, extents_of)
    assert nest is not None
    kernel = window_kernel(nest, WindowSchedule(4, 2), is_near=False)
    return grid_kernel(group, "kernel", unit(), kernel.grid, kernel.iteration, nest.in_place)


@pytest.mark.parametrize("channels", [37, 5])
@pytest.mark.parametrize(("maps", "weight"), [("acdb", "bcda"), ("abcd", "abcd")])
def test_depthwise_convolution(channels: int, maps: str, weight: str) -> None:
    def make(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
        return window_code(group, found_convolution(group).over_windows, extents_of)

    after = (BATCH, channels, 7, 19)
    shapes = [(BATCH, channels, 9, 21), (channels, 1, 3, 3), after]
    fixed: Any = (shapes, residual_convolution(channels), make)
    kernel = OpenKernel(*fixed, results=[after], choice=choice_of(maps, weight, maps))
    for batch in SIZES[:5]:
        kernel.check(2e-5, batch=batch)


@pytest.mark.parametrize("kind", ["max", "add"])
@pytest.mark.parametrize("maps", ["acdb", "abcd"])
def test_pooling(kind: str, maps: str) -> None:
    def build(x: Any, residual: Any) -> Any:
        unpadded = {"pad_low": (0, 0), "pad_high": (0, 0)}
        op = PoolOp.get(x, kind, (3, 3), strides=(1, 1), dilations=(1, 1), **unpadded)
        result = elementwise("add", op.output, residual)
        return [op, result], [result.output]

    def make(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
        return window_code(group, pooling(group, is_open=True), extents_of)

    after = (BATCH, 37, 7, 19)
    fixed: Any = ([(BATCH, 37, 9, 21), after], build, make)
    kernel = OpenKernel(*fixed, results=[after], choice=choice_of(maps, maps))
    for batch in SIZES[:5]:
        kernel.check(1e-5, batch=batch)


def winograd_code(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
    lanes = unit().lanes
    nest = winograd_nest(found_convolution(group), stored_choice(group), lanes, extents_of)
    assert nest is not None
    kernel = WinogradKernel(nest, 5, Tile(3, 1, 4), 1, lanes)
    fixed = (group, "kernel", unit(), kernel.grid, kernel.iteration, nest.in_place)
    return grid_kernel(*fixed, kernel.scratch_bytes, prepared=kernel.prepared)


def winograd_kernel(results: int, height: Extent, width: Extent) -> OpenKernel:
    after = (BATCH, 37, height - 2, width - 2)
    shapes = [(BATCH, 19, height, width), (37, 19, 3, 3), after]
    choice = choice_of("acdb", f"Acdb{unit().lanes}a:winograd{results}", "acdb")
    fixed: Any = (shapes, residual_convolution(1), winograd_code)
    return OpenKernel(*fixed, results=[after], choice=choice)


@pytest.mark.parametrize("results", [2, 4])
def test_winograd_convolution(results: int) -> None:
    kernel = winograd_kernel(results, 11, 11)
    for batch in SIZES[:5]:
        kernel.check(2e-4, batch=batch)


@pytest.mark.parametrize("results", [2, 4])
def test_winograd_convolution_of_images_of_any_extents(results: int) -> None:
    kernel = winograd_kernel(results, symbol("height"), symbol("width"))
    for batch, height, width in ((1, 3, 3), (2, 7, 19), (1, 6, 18), (0, 5, 5), (3, 4, 13)):
        kernel.check(2e-4, batch=batch, height=height, width=width)
