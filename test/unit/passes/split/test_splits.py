"""Splitting keeps what a function computes, for every kind of op, shape and memory limit."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BoolAttr,
    FloatAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
)
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.interpreter import interpret
from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid.base import integer, integers
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import BroadcastOp, PadOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.split.select_splits import splittable_ops
from braid.passes.split.split_dims import op_bytes
from braid.support.errors import InfeasibleError
from braid.universe import make_context

CONTEXT = make_context()

Shape = tuple[int, ...]
Make = Callable[..., Operation]


def function(shapes: list[Shape], make: Make) -> ModuleOp:
    """Return a module whose `@main` applies the op of `make`, and negates its first result."""
    main = func.FuncOp("main", ([TensorType(f32, shape) for shape in shapes], []))
    block = main.body.block
    op = make(*block.args)
    last = elementwise("neg", op.results[0])
    block.add_ops([op, last, func.ReturnOp(last.results[0], *op.results[1:])])
    main.update_function_type()
    return ModuleOp([main])


def windows(random: Random, groups: int = 1) -> tuple[dict[str, list[int]], Shape, int, int]:
    """Random windows on a random input of two spatial dims: the attributes, and N, C, H, W."""
    window = [random.randint(1, 3), random.randint(1, 3)]
    dilations = [random.randint(1, 2), random.randint(1, 2)]
    reach = [d * (k - 1) + 1 for k, d in zip(window, dilations, strict=True)]
    extents = [r + random.randint(0, 7) for r in reach]
    attributes = {
        "strides": [random.randint(1, 2), random.randint(1, 3)],
        "dilations": dilations,
        "pad_low": [random.randrange(r) for r in reach],
        "pad_high": [random.randrange(r) for r in reach],
    }
    n, c = random.randint(1, 3), groups * random.randint(1, 3)
    return attributes, (n, c, *extents), window[0], window[1]


def convolution(random: Random) -> tuple[list[Shape], Make]:
    groups = random.choice([1, 1, 2, 3])
    attributes, shape, kh, kw = windows(random, groups)
    weight = (groups * random.randint(1, 3), shape[1] // groups, kh, kw)
    return [shape, weight], lambda x, w: ConvOp.get(x, w, **attributes, groups=groups)


def transposed_convolution(random: Random) -> tuple[list[Shape], Make]:
    groups = random.choice([1, 2, 3])
    attributes, shape, kh, kw = windows(random, groups)
    attributes |= {"pad_low": [0, 0], "pad_high": [0, 0]}
    if random.random() < 0.5:  # windows that only touch
        attributes |= {"strides": [kh, kw], "dilations": [1, 1]}
    weight = (shape[1], random.randint(1, 4), kh, kw)
    return [shape, weight], lambda x, w: ConvTransposeOp.get(x, w, **attributes, groups=groups)


def resize(random: Random) -> tuple[list[Shape], Make]:
    shape = (random.randint(1, 2), random.randint(1, 3), 6, 6)
    scale = random.choice([2.0, 1.5, 0.5])
    mode = random.choice(["linear", "nearest", "cubic"])
    coordinates = random.choice(["half_pixel", "asymmetric", "align_corners"])
    how = Resampling(mode, coordinates, "floor")
    sizes = (*shape[:2], int(6 * scale), 6)
    return [shape], lambda x: ResizeOp.get(x, sizes, [1.0, 1.0, scale, 1.0], how)


def pooling(random: Random) -> tuple[list[Shape], Make]:
    attributes, shape, kh, kw = windows(random)
    kind = random.choice(["max", "add"])
    return [shape], lambda x: PoolOp.get(x, kind, (kh, kw), **attributes)


def product(random: Random) -> tuple[list[Shape], Make]:
    b, m, k, n = (random.randint(1, 6) for _ in range(4))
    return [(b, m, k), (random.choice([1, b]), k, n)], MatmulOp.on


def transpose(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(1, 5) for _ in range(3))
    permutation = random.sample(range(3), 3)
    return [shape], lambda x: TransposeOp.get(x, permutation)


def softmax(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(1, 5) for _ in range(3))
    dim = integer(random.randrange(3))
    return [shape], lambda x: SoftmaxOp.on(x, dim=dim)


def reduction(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(1, 5) for _ in range(3))
    dims = sorted(random.sample(range(3), random.randint(1, 2)))
    kind = StringAttr(random.choice(["add", "maximum", "mul"]))
    return [shape], lambda x: ReduceOp.on(x, kind=kind, dims=integers(dims))


def sum_of_two(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(1, 5) for _ in range(3))
    other = tuple(random.choice([1, extent]) for extent in shape)
    return [shape, other], lambda a, b: elementwise("add", a, b)


def broadcast(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(1, 5) for _ in range(3))
    source = tuple(random.choice([1, extent]) for extent in shape)
    return [source], lambda x: BroadcastOp.get(x, shape)


def layer_norm(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    first = random.randint(1, 2)
    rest = (1,) * first + shape[first:]
    return [shape, rest, rest], lambda x, scale, bias: LayerNormOp.get(
        x, scale, bias, first_dim=first, epsilon=1e-5
    )


def scan(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    attributes = {
        "kind": StringAttr("add"),
        "dim": integer(random.randrange(3)),
        "exclusive": BoolAttr.from_bool(random.random() < 0.5),
        "reverse": BoolAttr.from_bool(random.random() < 0.5),
    }
    return [shape], lambda x: ScanOp.on(x, **attributes)


def pad(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    low = [random.choice([0, 0, 2]) for _ in range(3)]
    return [shape], lambda x: PadOp.on(
        x, low=integers(low), high=integers([0, 1, 0]), value=FloatAttr(1.5, f32)
    )


def gather(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    dim = random.randrange(3)
    indices = constant_indices(random, (2, 3), shape[dim])
    return [shape], lambda x: GatherOp.get(x, indices(x), dim)


def gather_elements(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    dim = random.randrange(3)
    taken = tuple(extent - random.randrange(2) for extent in shape)
    indices = constant_indices(random, taken, shape[dim])
    return [shape], lambda x: GatherElementsOp.get(x, indices(x), dim)


def gather_nd(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 4) for _ in range(4))
    indices = constant_indices(random, (shape[0], 3, 2), min(shape[1:3]))
    return [shape], lambda x: GatherNdOp.get(x, indices(x), 1)


def scatter_elements(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    dim = random.randrange(3)
    updates = tuple(2 if other == dim else n for other, n in enumerate(shape))
    indices = constant_indices(random, updates, shape[dim])
    return [shape, updates], lambda x, u: ScatterElementsOp.get(x, indices(x), u, dim, "add")


def scatter_nd(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(4))
    indices = constant_indices(random, (3, 2), min(shape[:2]))
    return [shape, (3, *shape[2:])], lambda x, u: ScatterNdOp.get(x, indices(x), u, "add")


def top_k(random: Random) -> tuple[list[Shape], Make]:
    shape = tuple(random.randint(2, 5) for _ in range(3))
    dim = random.randrange(3)
    return [shape], lambda x: TopKOp.get(x, 2, dim)


def group(random: Random) -> tuple[list[Shape], Make]:
    """Return a convolution without padding, a bias and a constant scale per column."""
    _, c, _, w = shape = random.randint(1, 2), random.randint(1, 3), 7, random.randint(3, 6)
    numbers = np.arange(w - 2, dtype=np.float32).reshape(1, 1, 1, w - 2)
    weight, bias = (random.randint(1, 4), c, 3, 3), (1, 1, 1, 1)

    def make(*operands: SSAValue) -> Operation:
        block = Block(arg_types=[operand.type for operand in operands])
        x, y, z = block.args
        attributes = {"strides": [1, 1], "dilations": [1, 1], "pad_low": [0, 0]}
        conv = ConvOp.get(x, y, **attributes, pad_high=[0, 0], groups=1)
        biased = elementwise("add", conv.results[0], z)
        scale = ConstantOp.of(numbers)
        scaled = elementwise("mul", biased.results[0], scale.output)
        block.add_ops([conv, biased, scale, scaled, YieldOp(scaled.results[0])])
        return FusedOp(operands, [scaled.results[0].type], block)

    return [shape, weight, bias], make


def constant_indices(random: Random, shape: Shape, extent: int) -> Callable[[SSAValue], ConstantOp]:
    """Insert a constant of indices before the op that is being made."""
    numbers = np.array([random.randrange(-extent, extent) for _ in range(math.prod(shape))])
    array = numbers.reshape(shape).astype(np.int64)

    def make(beside: SSAValue) -> ConstantOp:
        constant = ConstantOp.of(array)
        block = beside.owner
        assert isinstance(block, Block)
        block.add_op(constant)
        return constant

    return make


KINDS = [
    layer_norm,
    scan,
    pad,
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    top_k,
    group,
    convolution,
    transposed_convolution,
    pooling,
    resize,
    product,
    transpose,
    softmax,
    reduction,
    sum_of_two,
    broadcast,
]


def largest(module: ModuleOp) -> int:
    return max((op_bytes(op) for op in splittable_ops(module)), default=0)


REDUCING = [convolution, pooling, product, reduction]
CASES = [*((kind, False) for kind in KINDS), *((kind, True) for kind in REDUCING)]


@pytest.mark.parametrize(
    ("kind", "reductions"), CASES, ids=lambda each: getattr(each, "__name__", str(each))
)
def test_results_stay_and_everything_fits(
    kind: Callable[[Random], tuple[list[Shape], Make]], reductions: bool
) -> None:
    """Tightens the limit until nothing fits; each time results and sizes are checked."""
    split_once = False
    for seed in range(3):
        random = Random(seed)
        shapes, make = kind(random)
        numbers = np.random.default_rng(seed)
        inputs = [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
        expected = interpret(function(shapes, make), inputs)
        limit = largest(function(shapes, make))
        while True:
            module = function(shapes, make)
            options = f"memory={limit} allow-split-reduction={str(reductions).lower()}"
            try:
                run_pipeline(CONTEXT, module, f"select-splits{{{options}}},apply-splits")
            except InfeasibleError:
                break
            assert largest(module) <= limit
            found = interpret(module, inputs)
            for actual, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)
            split_once |= any(not is_addressing(op) for op in list(splittable_ops(module))[2:])
            limit = largest(module) * 2 // 3
    assert split_once


def test_consecutive_ops_are_not_joined_between() -> None:
    def chain(x: SSAValue) -> Operation:
        return elementwise("exp", x)

    module = function([(10, 6)], chain)
    run_pipeline(CONTEXT, module, "select-splits{memory=150},apply-splits")
    names = [op.name for op in module.walk() if op.name.startswith("braid.")]
    assert names.count("braid.concat") == 1 and names[-1] == "braid.concat"
    assert names.count("braid.exp") == names.count("braid.neg") == 4
