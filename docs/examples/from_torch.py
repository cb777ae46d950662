"""Compile a PyTorch module once, for all batches up to 8.

Needs PyTorch: pip install 'braid-compiler[torch]'.
"""

import sys
from importlib.util import find_spec

import numpy as np

import braid


def main() -> None:
    """Export, compile, and compare with PyTorch."""
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4), torch.nn.Softmax(dim=-1)
    )
    # The dim gets the name by which braid knows it.
    exported = braid.from_torch(module, (torch.randn(2, 16),), dynamic_shapes=({0: "batch"},))
    model = braid.compile(exported, shape_bounds={"batch": 8})
    for batch in (1, 3, 8):
        x = torch.randn(batch, 16)
        difference = np.abs(model(x) - module(x).detach().numpy()).max()
        print(f"batch {batch}: differs from PyTorch by {difference:.1e}")
        assert difference < 1e-5


if __name__ == "__main__":
    if find_spec("torch") is None:
        print("this example needs PyTorch: pip install 'braid-compiler[torch]'")
        sys.exit()
    main()
