"""Run a PyTorch module by `torch.compile` with braid as its backend.

Needs PyTorch: pip install torch onnxscript.
"""

import sys
from importlib.util import find_spec


def main() -> None:
    """Compile, run at several sizes, and compare with eager."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
    net.eval()
    fast = torch.compile(net, backend="braid", dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 8):
            x = torch.randn(batch, 16)
            difference = (fast(x) - net(x)).abs().max().item()
            print(f"batch {batch}: differs from eager by {difference:.1e}")
            assert difference < 1e-5


if __name__ == "__main__":
    if find_spec("torch") is None:
        print("this example needs PyTorch: pip install torch onnxscript")
        sys.exit()
    main()
