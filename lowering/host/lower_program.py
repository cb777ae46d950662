"""`lower-program`: a planned model becomes code on raw pointers."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.lowering.host.emit_program import emit_program


@dataclass(frozen=True)
class LowerProgramPass(ModulePass):
    """Replaces the module by its program.

    In: a module after `plan-memory`. Out: `@braid_run(env, inputs, outputs, weights, arena)`,
    declarations of the kernels it calls, and a thunk for each kernel with a grid
    (`braid.grid` > 1), which runs through `braid_env`'s `parallel_for`.

    ```mlir
    llvm.func @braid_run(%0: !llvm.ptr, …) -> i32 {
      llvm.call @kernel_0(%1, %2, %3, %4) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
    ```
    """

    name = "lower-program"

    profile: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Emit the program of the one public function."""
        function = next(
            f for f in op.ops if isinstance(f, func.FuncOp) and f.sym_visibility is None
        )
        program = emit_program(op, function, counters={} if self.profile else None)
        block = op.body.block
        for old in list(block.ops):
            old.detach()
            old.erase(safe_erase=False)
        for new in list(program.body.block.ops):
            new.detach()
            block.add_op(new)
