"""A transpose is a view exactly where its result lies in memory as its operand does."""

import math
from itertools import permutations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block

from braid.analysis.storage.tensor_storage import is_transposed_view
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.relayout import to_storage

SHAPE = (2, 3, 4)
TAGS = ["".join(letters) for letters in permutations("abc")]


@pytest.mark.parametrize("permutation", list(permutations(range(3))))
@pytest.mark.parametrize("source", TAGS)
@pytest.mark.parametrize("target", TAGS)
def test_views_are_what_moves_nothing(
    permutation: tuple[int, ...], source: str, target: str
) -> None:
    op = TransposeOp.get(Block(arg_types=[TensorType(f32, SHAPE)]).args[0], permutation)
    x = np.arange(math.prod(SHAPE)).reshape(SHAPE)
    before, after = Layout.parse(source), Layout.parse(target)
    stored = to_storage(x, before).ravel()
    alike = np.array_equal(stored, to_storage(x.transpose(permutation), after).ravel())
    plain = before.is_row_major and after.is_row_major
    assert is_transposed_view(op, before, after) == (alike and not plain)


def test_blocks_are_no_views() -> None:
    op = TransposeOp.get(Block(arg_types=[TensorType(f32, (32, 32))]).args[0], (1, 0))
    assert not is_transposed_view(op, Layout.parse("Ab16a"), Layout.parse("Ba16b"))
