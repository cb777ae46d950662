"""Kernels of each kind as RTL: bit-exact to the interpreter, in the predicted cycles."""

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, i64

from braid.lowering.fpga.convert.design_of import design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.design.streams import channels_of, network_of, stages_of
from braid.lowering.fpga.rtl.simulate import VerilatedDesign
from braid.lowering.fpga.schedule.select import apply_schedule
from braid.solvers.streams import earliest
from braid.support.errors import BraidError, UnsupportedError
from test.run.fpga import handshake
from test.run.fpga.designs import check, images, parse, predicted, scheduled

REQUANTIZED = """
  %m = braid.constant {{value = dense<{multipliers}> : tensor<1x{c}x1x1xi32>}}
      : tensor<1x{c}x1x1xi32>
  %s = braid.constant {{value = dense<{shifts}> : tensor<1x{c}x1x1xi32>}}
      : tensor<1x{c}x1x1xi32>
  %z = braid.constant {{value = dense<-3> : tensor<1x1x1x1xi8>}} : tensor<1x1x1x1xi8>
  %q = braid.requantize %c, %m, %s, %z {{rounding = "half_even"}}
      : (tensor<1x{c}x{h}x{w}xi32>, tensor<1x{c}x1x1xi32>, tensor<1x{c}x1x1xi32>,
      tensor<1x1x1x1xi8>) -> tensor<1x{c}x{h}x{w}xi8>
"""


def dense(array: np.ndarray) -> str:
    return str(array.tolist())


def convolution(
    seed: int,
    channels: tuple[int, int],
    image: tuple[int, int],
    window: tuple[int, int] = (3, 3),
    *,
    stride: int = 1,
    dilation: int = 1,
    pad: int = 1,
    groups: int = 1,
    pool: bool = False,
) -> str:
    """Return a convolution on 8-bit numbers, requantized for each channel, optionally with
    pooling."""
    rng = np.random.default_rng(seed)
    given, made = channels
    kernel = (made, given // groups, *window)
    height, width = (
        (extent + 2 * pad - dilation * (size - 1) - 1) // stride + 1
        for extent, size in zip(image, window, strict=True)
    )
    x, y = f"1x{given}x{image[0]}x{image[1]}xui8", f"1x{made}x{height}x{width}"
    weights = f"tensor<{'x'.join(map(str, kernel))}xi8>"
    scale = REQUANTIZED.format(
        multipliers=dense(rng.integers(1, 1 << 24, (1, made, 1, 1))),
        shifts=dense(rng.integers(28, 34, (1, made, 1, 1))),
        c=made,
        h=height,
        w=width,
    )
    end, result = f"func.return %q : tensor<{y}xi8>", f"tensor<{y}xi8>"
    if pool:
        result = f"tensor<1x{made}x{height // 2}x{width // 2}xi8>"
        end = f"""%y = braid.pool %q {{kind = "max", window = array<i64: 2, 2>,
          strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
          pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>}}
          : (tensor<{y}xi8>) -> {result}
        func.return %y : {result}"""
    return f"""
    func.func @main(%x: tensor<{x}>) -> {result} {{
      %w = braid.constant {{value = dense<{dense(rng.integers(-128, 128, kernel))}> : {weights}}}
          : {weights}
      %c = braid.conv %x, %w {{strides = array<i64: {stride}, {stride}>,
          dilations = array<i64: {dilation}, {dilation}>, pad_low = array<i64: {pad}, {pad}>,
          pad_high = array<i64: {pad}, {pad}>, groups = {groups} : i64, accumulator = i32}}
          : (tensor<{x}>, {weights}) -> tensor<{y}xi32>
      {scale}
      {end}
    }}"""


def matmul(seed: int, rows: int, depth: int, columns: int) -> str:
    rng = np.random.default_rng(seed)
    weights = dense(rng.integers(-128, 128, (depth, columns)))
    return f"""
    func.func @main(%x: tensor<{rows}x{depth}xi8>) -> tensor<{rows}x{columns}xi32> {{
      %w = braid.constant {{value = dense<{weights}> : tensor<{depth}x{columns}xi8>}}
          : tensor<{depth}x{columns}xi8>
      %y = braid.matmul %x, %w {{accumulator = i32}}
          : (tensor<{rows}x{depth}xi8>, tensor<{depth}x{columns}xi8>)
          -> tensor<{rows}x{columns}xi32>
      func.return %y : tensor<{rows}x{columns}xi32>
    }}"""


RESIDUAL = """
func.func @main(%x: tensor<1x2x12x12xi8>) -> tensor<1x2x12x12xi8> {
  %w = braid.constant {value = dense<3> : tensor<2x2x3x3xi8>} : tensor<2x2x3x3xi8>
  %c = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64, accumulator = i32}
      : (tensor<1x2x12x12xi8>, tensor<2x2x3x3xi8>) -> tensor<1x2x12x12xi32>
  %m = braid.constant {value = dense<77> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %s = braid.constant {value = dense<12> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %z = braid.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %q = braid.requantize %c, %m, %s, %z {rounding = "half_even"} : (tensor<1x2x12x12xi32>,
      tensor<1x1x1x1xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi8>) -> tensor<1x2x12x12xi8>
  %y = braid.add %q, %x : (tensor<1x2x12x12xi8>, tensor<1x2x12x12xi8>) -> tensor<1x2x12x12xi8>
  func.return %y : tensor<1x2x12x12xi8>
}"""


def test_convolution_and_pooling_take_a_pixel_a_cycle() -> None:
    text = convolution(1, (1, 2), (32, 32), pool=True)
    checked = check(parse(text), 64)
    # 18 products, one of them by 64, and one for each of two channels after them.
    assert checked.schedule.resources.dsp == 18 - 1 + 2
    # A row and a pixel of the window are behind the image, and the second image follows the first.
    assert checked.schedule.cycles == 32 * 32 + 33
    assert checked.cycles <= 2 * (32 * 32 + 33) + 40


def test_folded_depthwise_convolution_with_strides() -> None:
    check(parse(convolution(2, (4, 4), (9, 7), stride=2, groups=4)), 6)


def test_matmul() -> None:
    """16³ products take 16 x 16 x 16 / multipliers cycles, beside the depth of the pipeline."""
    checked = check(parse(matmul(3, 16, 16, 16)), 1, seeds=(1,))
    one = predicted(checked.converted, 1)
    assert 4096 <= one <= 4096 + 20


@pytest.mark.slow
def test_a_product_takes_a_sixth_of_the_cycles_of_handshaking() -> None:
    """For the same numbers, by CIRCT's dynamically scheduled circuit, with one multiplier as
    well."""
    rng = np.random.default_rng(3)
    module = parse(matmul(3, 16, 16, 16))
    weights = rng.integers(-128, 128, (16, 16))
    x = np.random.default_rng(4).integers(-128, 128, (16, 16)).astype(np.int8)
    converted, schedule = scheduled(function_named(module, "main"), {}, 1)
    assert schedule.resources.dsp == 1
    ours = VerilatedDesign(converted.design).run([x], [(16, 16)])
    theirs, cycles = handshake.product(x, weights)
    np.testing.assert_array_equal(ours.outputs[0], x.astype(np.int32) @ weights)
    np.testing.assert_array_equal(theirs, ours.outputs[0])
    print(f"{ours.cycles} cycles, by handshaking {cycles}")
    assert 6 * ours.cycles <= cycles


MEAN = """
func.func @main(%x: tensor<1x6x5x4xi8>) -> tensor<1x6x1x1xi16> {
  %c = braid.cast %x : (tensor<1x6x5x4xi8>) -> tensor<1x6x5x4xi16>
  %y = braid.reduce %c {kind = "add", dims = array<i64: 2, 3>}
      : (tensor<1x6x5x4xi16>) -> tensor<1x6x1x1xi16>
  func.return %y : tensor<1x6x1x1xi16>
}"""


def flattened(seed: int, lanes: int, size: tuple[int, int], columns: int) -> str:
    """Return a matmul with all numbers of an image."""
    depth = lanes * size[0] * size[1]
    weights = np.random.default_rng(seed).integers(-128, 128, (depth, columns))
    x, flat, y = (
        f"tensor<1x{lanes}x{size[0]}x{size[1]}xi8>",
        f"tensor<1x{depth}xi8>",
        f"tensor<1x{columns}xi32>",
    )
    return f"""
    func.func @main(%x: {x}) -> {y} {{
      %w = braid.constant {{value = dense<{dense(weights)}> : tensor<{depth}x{columns}xi8>}}
          : tensor<{depth}x{columns}xi8>
      %f = braid.reshape %x : ({x}) -> {flat}
      %y = braid.matmul %f, %w {{accumulator = i32}}
          : ({flat}, tensor<{depth}x{columns}xi8>) -> {y}
      func.return %y : {y}
    }}"""


@pytest.mark.parametrize(("dsp", "cycles"), [(1, 480), (2, 240), (8, 60), (24, 20)])
def test_sums_over_the_image_take_its_pixels_one_by_one(dsp: int, cycles: int) -> None:
    """Groups of channels have sums of their own; no pixel is kept."""
    checked = check(parse(flattened(5, 4, (5, 4), 6)), dsp, seeds=(1,))
    assert checked.schedule.cycles == cycles
    assert checked.schedule.resources.dsp <= dsp


def test_a_sum_of_an_image_keeps_no_image() -> None:
    checked = check(parse(MEAN), 1, seeds=(1,))
    assert checked.schedule.cycles in (20, 20 * 6)
    assert checked.schedule.resources.ff < 6 * 5 * 4 * 8


def test_residual_block_at_the_computed_depths_and_one_less() -> None:
    checked = check(parse(RESIDUAL), 64, seeds=(1,))
    design = checked.converted.design
    around = max(channels_of(design), key=lambda channel: channel.depth.value.data)
    depth = around.depth.value.data
    around.attributes["depth"] = type(around.depth)(depth - 1, around.depth.type)
    network = network_of(design)
    less = [channel.depth.value.data for channel in channels_of(design)]
    times = earliest(network, 2, less)
    slower = VerilatedDesign(design)
    x = np.zeros((2, 2, 12, 12), np.int8)
    if times is None:
        with pytest.raises(BraidError, match="has not ended"):
            slower.run([x], [x.shape], most_cycles=10_000)
    else:
        done = slower.run([x], [x.shape])
        assert done.cycles == times.cycles(network) > checked.cycles


JOINED = """
func.func @main(%x: tensor<1x2x6x6xi8>) -> (tensor<1x5x3x3xi8>, tensor<1x2x6x6xi8>) {
  %w = braid.constant {value = dense<[[[[3]], [[-2]]]]> : tensor<1x2x1x1xi8>} : tensor<1x2x1x1xi8>
  %c = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32}
      : (tensor<1x2x6x6xi8>, tensor<1x2x1x1xi8>) -> tensor<1x1x6x6xi32>
  %m = braid.constant {value = dense<77> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %s = braid.constant {value = dense<9> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %z = braid.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %q = braid.requantize %c, %m, %s, %z {rounding = "half_even"} : (tensor<1x1x6x6xi32>,
      tensor<1x1x1x1xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi8>) -> tensor<1x1x6x6xi8>
  %n = braid.maximum %x, %z : (tensor<1x2x6x6xi8>, tensor<1x1x1x1xi8>) -> tensor<1x2x6x6xi8>
  %j = braid.concat %n, %q, %x {dim = 1 : i64} : (tensor<1x2x6x6xi8>, tensor<1x1x6x6xi8>,
      tensor<1x2x6x6xi8>) -> tensor<1x5x6x6xi8>
  %y = braid.pool %j {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>,
      dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>}
      : (tensor<1x5x6x6xi8>) -> tensor<1x5x3x3xi8>
  func.return %y, %n : tensor<1x5x3x3xi8>, tensor<1x2x6x6xi8>
}"""


def test_channels_of_streams_are_joined() -> None:
    checked = check(parse(JOINED), 64)
    assert checked.cycles < 2 * 36 + 40


def test_a_joined_pixel_in_folds() -> None:
    """Groups of channels cut through what is joined."""
    module = parse(JOINED)
    converted = design_of(function_named(module, "main"), {})
    design = converted.design
    (stage,) = (one for one in stages_of(design) if one.label.data == "concat")
    stage.unroll = DenseArrayBase.from_list(i64, [1, 1])
    apply_schedule(design)
    given, expected = images(module, converted, None, 1)
    done = VerilatedDesign(design).run(given, [array.shape for array in expected])
    for output, array in zip(done.outputs, expected, strict=True):
        np.testing.assert_array_equal(output, array)
    assert done.cycles > 2 * 36 * 5


FLOATS = "(tensor<2x4xf32>) -> tensor<2x4xf32>"
REFUSED = {
    "'braid.softmax' on an FPGA": f"braid.softmax %x {{dim = 1 : i64}} : {FLOATS}",
    "lanes of f32 on an FPGA": f"braid.neg %x : {FLOATS}",
    "lanes of f32 on": (  # what a reduction is cut at
        'braid.reduce %x {kind = "maximum", dims = array<i64: 1>} : '
        "(tensor<2x4xf32>) -> tensor<2x1xf32>\n"
        "%z = braid.sub %x, %y : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>"
    ),
    "'braid.concat' along dim 0": (
        "braid.concat %x, %x {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> "
        "tensor<4x4xf32>\n%z = braid.slice %y {offsets = array<i64: 0, 0>, "
        "sizes = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> "
        "tensor<2x4xf32>"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stages_do_not_have_is_refused_by_name(name: str) -> None:
    op = REFUSED[name]
    text = f"""func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {{
      %y = {op}
      func.return {"%z" if "%z" in op else "%y"} : tensor<2x4xf32>
    }}"""
    with pytest.raises(UnsupportedError, match=name):
        design_of(function_named(parse(text), "main"), {})


def test_a_maximum_of_windows_of_floats_is_refused() -> None:
    """Its padding is -∞, which is no integer."""
    text = """func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
      %y = braid.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 1, 1>,
        dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>}
        : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
      func.return %y : tensor<1x2x4x4xf32>
    }"""
    with pytest.raises(UnsupportedError, match="lanes of f32 on an FPGA"):
        design_of(function_named(parse(text), "main"), {})


LONG = {
    "convolution": (convolution(1, (2, 4), (36, 36)), 20),
    "convolution without folds": (convolution(1, (1, 2), (33, 33)), 200),
    "strides": (convolution(2, (3, 4), (40, 40), stride=2), 30),
    "depthwise": (convolution(2, (4, 4), (34, 34), groups=4, dilation=2), 12),
    "matmul": (matmul(3, 16, 16, 16), 1),
    "flattened": (flattened(5, 4, (9, 10), 6), 2),
}


@pytest.mark.parametrize("name", LONG)
def test_long_kernels_take_little_but_their_iterations(name: str) -> None:
    """By the prediction, which `check` compares with simulations of shorter ones."""
    text, dsp = LONG[name]
    converted, schedule = scheduled(function_named(parse(text), "main"), {}, dsp)
    assert schedule.cycles > 1000 and len(stages_of(converted.design)) == 1
    assert schedule.cycles < predicted(converted, 1) <= 1.03 * schedule.cycles


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_random_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depthwise = bool(rng.integers(2))
    given = int(rng.integers(1, 6))
    channels = (given, given) if depthwise else (given, int(rng.integers(1, 7)))
    window = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    dilation = int(rng.integers(1, 3))
    reach = min((size - 1) * dilation for size in window)
    text = convolution(
        seed,
        channels,
        (int(rng.integers(6, 14)), int(rng.integers(6, 14))),
        window,
        stride=int(rng.integers(1, 3)),
        dilation=dilation,
        pad=int(rng.integers(0, reach // 2 + 1)),
        groups=given if depthwise else 1,
    )
    check(parse(text), int(rng.integers(6, 200)), seeds=(seed,))
