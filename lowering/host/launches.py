"""Launching functions on devices, and waiting for them, through the runtime."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.variants import device_functions
from braid.lowering.host.environment import FINISH_OFFSET, SUBMIT_OFFSET, Environment
from braid.lowering.host.pointers import PointerBuilder
from braid.lowering.host.values import Values


def function_numbers(module: ModuleOp) -> dict[str, int]:
    """Return the number of each function that the model launches, as in the model's descriptor."""
    return {op.sym_name.data: number for number, op in enumerate(device_functions(module))}


class Launches:
    """Emits launches and waits; a token is the ticket that the runtime gives."""

    def __init__(
        self, source: ModuleOp, environment: Environment, values: Values, entry: PointerBuilder
    ) -> None:
        self._numbers = function_numbers(source)
        self._environment = environment
        self._values = values
        self._entry = entry
        self._slots: dict[int, SSAValue] = {}

    def launch(self, op: LaunchOp, builder: PointerBuilder) -> None:
        """Start a function on its device; its results are where the plan says."""
        values = self._values
        values.bind_results(op)
        count = len(op.inputs) + len(op.outputs)
        slots = self._slots_for(count + len(op.dependencies))
        buffers = [values.tensors[value] for value in (*op.inputs, *op.outputs)]
        builder.store_pointers(buffers, slots)
        after = builder.address(slots, 8 * count)
        builder.store_pointers(self._tickets(op.dependencies), after)
        ticket = builder.call_pointer(
            self._environment.service(builder, SUBMIT_OFFSET),
            [
                self._environment.env,
                builder.constant(self._numbers[op.callee.string_value()]),
                slots,
                after,
                builder.constant(len(op.dependencies)),
            ],
            i64,
        )
        assert ticket is not None
        values.scalars[op.token] = ticket

    def finish(self, op: AwaitOp, builder: PointerBuilder) -> None:
        """Wait for all tokens; the results are where the operands are."""
        for ticket in self._tickets(op.tokens):
            service = self._environment.service(builder, FINISH_OFFSET)
            builder.call_pointer(service, [self._environment.env, ticket])
        for value, result in zip(op.inputs, op.outputs, strict=True):
            self._values.tensors[result] = self._values.tensors[value]

    def _tickets(self, tokens: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._values.scalars[token] for token in tokens]

    def _slots_for(self, count: int) -> SSAValue:
        """Return memory on the stack for `count` pointers, which the runtime copies at once.

        Launches with equally many share it.
        """
        if count not in self._slots:
            self._slots[count] = self._entry.stack_slots(count)
        return self._slots[count]
