"""A group of ops that a chip computes by a stream: the content of its attribute `braid.stream`.

After `attach-streams`, the whole computation of a cluster is one group, which passes treat as a
kernel. Its operands and results are the tensors that cross the border of the chip.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    f64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.universe import Universe

from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.base import integers
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.npu.stream_parts import StreamPart
from braid.lowering.npu.stream_program import StreamProgram
from braid.targets.simulator.instructions import Stream, from_text, to_text

OWN = -1
"""Marks a tensor that exists only inside of the stream, such as a spill, so has no operand."""


@dataclass(frozen=True)
class StreamedGroup:
    """A stream, and the data that its execution needs.

    `kernels` is a module with a function for each kernel. Tensor n outside is operand
    `tensors[n]` of the group, or `OWN`. `results` are, for each of the group's, the kernel that
    makes it, "" for a copy, and the tensors that it reads. A run takes `seconds`, and a run of the
    model is expected to come by `executions` times.
    """

    stream: Stream
    kernels: ModuleOp
    tensors: tuple[int, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    seconds: float
    executions: float

    @staticmethod
    def of(op: Operation) -> "StreamedGroup | None":
        """Return the stream in the attribute of `op`; None if it has none.

        `op` is a group, or the function of its kernel.
        """
        attribute = op.attributes.get(STREAM)
        if not isinstance(attribute, DictionaryAttr):
            return None
        data = attribute.data
        results = cast(ArrayAttr[DictionaryAttr], data["results"])
        return StreamedGroup(
            from_text(_text(data, "stream")),
            Parser(all_dialects(), _text(data, "kernels")).parse_module(),
            _integers(data, "tensors"),
            tuple((_text(r.data, "kernel"), _integers(r.data, "tensors")) for r in results),
            _number(data, "seconds"),
            _number(data, "executions"),
        )

    @staticmethod
    def from_program(
        program: StreamProgram, stream: Stream, block: Block, seconds: float, executions: float
    ) -> "StreamedGroup":
        """Return the group of a program for `block`, whose arguments are the group's operands."""
        operands: dict[SSAValue, int] = {value: n for n, value in enumerate(block.args)}
        tensors = tuple(operands.get(value, OWN) for value in program.outside)
        return StreamedGroup(stream, program.kernels, tensors, program.results, seconds, executions)

    def attribute(self) -> DictionaryAttr:
        """Return the attribute as it stands on the group."""
        results = [
            DictionaryAttr({"kernel": StringAttr(kernel), "tensors": integers(numbers)})
            for kernel, numbers in self.results
        ]
        return DictionaryAttr(
            {
                "stream": StringAttr(to_text(self.stream)),
                "kernels": StringAttr(str(self.kernels)),
                "tensors": integers(self.tensors),
                "results": ArrayAttr(results),
                "seconds": FloatAttr(self.seconds, f64),
                "executions": FloatAttr(self.executions, f64),
            }
        )

    @property
    def functions(self) -> dict[str, FuncOp]:
        """The kernels by name."""
        return {op.sym_name.data: op for op in self.kernels.ops if isinstance(op, FuncOp)}


def group_members(part: StreamPart, about: StreamedGroup) -> FusedOp:
    """Put the members of `part`, which are adjacent, into one group that a stream computes."""
    function = part.alone.parent_op()
    assert function is not None
    body = function.clone().regions[0].detach_block(0)
    last = body.last_op
    assert isinstance(last, ReturnOp)
    body.insert_op_before(YieldOp(*last.arguments), last)
    last.detach()
    last.erase()
    returned, members = part.handed_on, part.members
    group = FusedOp(part.inputs, [v.type for v in returned], body, {STREAM: about.attribute()})
    union_names(group, *members)
    sum_measured(group, members)
    group.location = members[-1].location
    part.block.insert_op_before(group, members[0])
    for old, new in zip(returned, group.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for op in reversed(members):
        op.detach()
        op.erase()
    return group


@cache
def all_dialects() -> Context:
    """Return a context with the dialects of installed packages too: kernels may have any op."""
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    return context


def _text(data: Mapping[str, Attribute], name: str) -> str:
    return cast(StringAttr, data[name]).data


def _integers(data: Mapping[str, Attribute], name: str) -> tuple[int, ...]:
    values = cast(DenseArrayBase[IntegerType], data[name]).get_values()
    return tuple(int(value) for value in values)


def _number(data: Mapping[str, Attribute], name: str) -> float:
    return float(cast("FloatAttr[Any]", data[name]).value.data)
