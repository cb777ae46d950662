"""Groups as text, to know again what was measured."""

from io import StringIO
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp


def plain_text(group: FusedOp) -> str:
    """The body of `group`, equal for groups that compute the same in whatever layouts.

    Names of layers, and what passes have noted on the ops, are left out.
    """
    body = group.body.clone()
    values: list[SSAValue] = list(body.block.args)
    for op in body.walk():
        for name in [name for name in op.attributes if name.startswith("braid.")]:
            del op.attributes[name]
        values.extend(op.results)
    for value in values:
        value.name_hint = None
        if _is_tensor(value):
            type = with_layout(cast(AnyTensor, value.type), Layout.row_major(len(shape_of(value))))
            Rewriter.replace_value_with_new_type(value, type)
    text = StringIO()
    Printer(stream=text, print_generic_format=True).print_region(body)
    return text.getvalue()


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)
