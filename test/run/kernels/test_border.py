"""Borders of paddings whose operand lies in place."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import set_boxes
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.border import BorderFamily
from test.machines import HOST
from test.run.kernels.conftest import candidate_of, make_group
from test.schedules import emitted
from test.storage import from_storage

LOW, HIGH = (0, 0, 1, 2), (0, 0, 3, 1)


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd4b"])
@pytest.mark.parametrize("shape", [(1, 20, 5, 7), (2, 4, 1, 1), (1, 64, 3, 40)])
def test_only_the_border_is_written(tag: str, shape: tuple[int, ...]) -> None:
    def pad(x):
        op = PadOp.get(x, LOW, HIGH, -2.5)
        return [op], [op.output]

    layout = Layout.parse(tag)
    family = BorderFamily(HOST)
    group = make_group([TensorType(f32, shape)], pad, LayoutChoice((layout,), (layout,)))
    assert family.match(group) is None
    set_boxes(group, {0: 0})
    candidate = candidate_of(family, group)
    padded = [e + low + high for e, low, high in zip(shape, LOW, HIGH, strict=True)]
    stored = np.full(layout.storage_shape(padded), 7, np.float32)
    CallableKernel(emitted(candidate, symbol="border"))(stored, stored)
    expected = np.full(padded, -2.5, np.float32)
    expected[:, :, 1:-3, 2:-1] = 7
    np.testing.assert_array_equal(from_storage(stored, layout, padded), expected)
