"""Decide which tensors of a program share a buffer, and for how long each buffer is needed.

Views, the values that branches yield, and the values that a loop carries from one iteration
to the next are one storage; so are a result of the function and the kernel result that becomes
it. Where sharing is not possible, the terminator copies (see `StorageTable.copies`).
"""

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation

from braid.analysis.storage.strided_storage import boxes_of, view_offset
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.handed_values import tensors
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.launch import AwaitOp
from braid.passes.storage.call_storage import bind_call
from braid.passes.storage.control_storage import bind_branches, bind_for, bind_while
from braid.passes.storage.memory_spaces import MAIN, MemorySpaces
from braid.passes.storage.storage_table import StorageTable


class StorageAssignment(StorageTable):
    """The table of a function with all of its tensors."""

    def __init__(self, function: func.FuncOp, memories: MemorySpaces) -> None:
        super().__init__(function, memories)
        for index, argument in enumerate(function.body.block.args):
            if isinstance(argument.type, TensorType):
                self.new(argument, function, BufferAttr.input(index))
        self._visit(function.body.block)
        self._share_results(function)

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case scf.IfOp() | scf.IndexSwitchOp():
                    bind_branches(self, op, self._visit)
                case scf.ForOp():
                    bind_for(self, op, self._visit)
                case scf.WhileOp():
                    bind_while(self, op, self._visit)
                case ConstantOp() | ParameterOp():
                    self.new(op.output, op, BufferAttr.of("weights", 0))
                case _ if is_view(op) or view_offset(op) is not None:
                    self.view(op.operands[0], op.results[0], view_offset(op) or 0)
                case AwaitOp():
                    for value, result in zip(op.inputs, op.outputs, strict=True):
                        self.view(value, result, 0)
                case func.CallOp() if not boxes_of(op):
                    bind_call(self, op)
                case _:
                    self._compute(op)

    def _compute(self, op: Operation) -> None:
        """Give results storages of their own, in which operands may lie."""
        for result in tensors(op.results):
            self.new(result, op)
        for operand, begin in boxes_of(op).items():
            self.move_into(op.operands[operand], op.results[0], begin)

    def _share_results(self, function: func.FuncOp) -> None:
        """Place the results of the function in the memory of its outputs."""
        terminator = function.body.block.last_op
        assert terminator is not None
        for index, value in enumerate(terminator.operands):
            storage = self.of[value]
            if storage.place is None and storage.memory == MAIN:
                storage.place = BufferAttr.output(index)
