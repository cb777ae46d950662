"""An op that ends a run with an error."""

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition


@irdl_op_definition
class FailOp(IRDLOperation):
    """Fail the run with `message` where this op is reached; the model's results are no values.

    It stands in branches that could not be imported. It has an effect, so that it is neither
    erased, nor merged, nor moved out of its branch; the ops after it in its block only provide
    values of the expected types.

    ```mlir
    braid.fail "the branch needs a window of 5 on 4 elements"
    ```
    """

    name = "braid.fail"

    message = attr_def(StringAttr)

    assembly_format = "$message attr-dict"

    @staticmethod
    def of(message: str) -> "FailOp":
        """Build the op with this message."""
        return FailOp(attributes={"message": StringAttr(message)})
