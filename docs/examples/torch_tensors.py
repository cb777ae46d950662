"""Export a PyTorch module, and run what is compiled of it on tensors of PyTorch.

Needs PyTorch: pip install torch onnxscript.
"""

import sys
from importlib.util import find_spec

import braid


def main() -> None:
    """Run a model on bf16 tensors, and show that no memory is copied."""
    import torch

    net = torch.nn.Linear(16, 4).eval().bfloat16()
    x = torch.randn(2, 16, dtype=torch.bfloat16)
    model = braid.compile(braid.from_torch(net, (x,)))
    y = model(x)  # a tensor, since x is one
    out = torch.empty(2, 4, dtype=torch.bfloat16)
    assert model(x, out=out) is out
    print(f"{y.dtype}, differs from eager by {(y - net(x)).abs().max().item():.1e}")
    assert torch.equal(out, y)


if __name__ == "__main__":
    if find_spec("torch") is None:
        print("this example needs PyTorch: pip install torch onnxscript")
        sys.exit()
    main()
