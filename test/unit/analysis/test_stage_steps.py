"""Steps along the dims of stages, compared with the index maps that they are derived from."""

import itertools
import random
from math import prod

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block

from braid.analysis.nests.stage_steps import Part, parts_of, steps_along
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.structure import Stage


def _convolution(groups: int, stride: int, dilation: int) -> Stage:
    x, w = TensorType(f32, [2, 2 * groups, 9, 8]), TensorType(f32, [3 * groups, 2, 2, 3])
    op = ConvOp.get(
        *Block(arg_types=[x, w]).args,
        strides=[stride, 1],
        dilations=[dilation, 1],
        pad_low=[0, 0],
        pad_high=[0, 0],
        groups=groups,
    )
    (stage,) = op.structure().stages
    return stage


def test_steps_lead_to_the_elements_that_maps_index() -> None:
    generator = random.Random(3)
    for groups, stride, dilation in itertools.product((1, 2), (1, 2), (1, 3)):
        stage = _convolution(groups, stride, dilation)
        parts = parts_of(stage)
        assert prod(part.extent for part in parts) == prod(stage.extents)
        for access in stage.reads:
            strides = [generator.randrange(1, 500) for _ in access.map.results]
            steps = steps_along(access.map, strides, parts)
            assert steps is not None
            for _ in range(20):
                numbers = [generator.randrange(part.extent) for part in parts]
                point = [0] * len(stage.extents)
                for part, number in zip(parts, numbers, strict=True):
                    point[part.dim] += part.factor * number
                index = access.map.eval(point, [])
                expected = sum(i * s for i, s in zip(index, strides, strict=True))
                assert sum(n * s for n, s in zip(numbers, steps, strict=True)) == expected


def test_channels_of_groups_are_two_parts() -> None:
    own = [part for part in parts_of(_convolution(2, 1, 1)) if part.dim == 1]
    assert own == [Part(1, 3, 2), Part(1, 1, 3)]
    assert len([part for part in parts_of(_convolution(1, 1, 1)) if part.dim == 1]) == 1


def test_a_repeated_operand_has_no_step_along_batches() -> None:
    a, b = TensorType(f32, [4, 5, 6]), TensorType(f32, [1, 6, 7])
    (stage,) = MatmulOp.on(*Block(arg_types=[a, b]).args, accumulator=None).structure().stages
    parts = parts_of(stage)
    assert steps_along(stage.reads[1].map, (42, 7, 1), parts) == [0, 0, 1, 7]
