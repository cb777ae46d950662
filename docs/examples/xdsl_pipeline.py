"""braid's passes in a pipeline of xDSL, beside xDSL's own."""

from xdsl.passes import PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from braid.frontends.mlir import parse_mlir
from braid.passes.canonicalize.cse import CSEPass
from braid.universe import UNIVERSE, make_context

context = make_context()
module = parse_mlir(
    context,
    """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = braid.exp %x {braid.name = "a"} : (tensor<4xf32>) -> tensor<4xf32>
      %b = braid.exp %x {braid.name = "b"} : (tensor<4xf32>) -> tensor<4xf32>
      %c = braid.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %c : tensor<4xf32>
    }
    """,
    "example.mlir",
).module

# The classes of passes, as in every pipeline of xDSL:
PassPipeline((CSEPass(), DeadCodeElimination())).apply(context, module)

# or their names; xdsl-opt finds them through the entry point of the installed package.
passes = get_all_passes() | UNIVERSE.all_passes
PassPipeline.parse_spec(passes, "select-fusion,apply-fusion,dce").apply(context, module)

print(module)
assert str(module).count("braid.exp") == 1 and '["a", "b"]' in str(module)
assert "braid.fused" in str(module)
