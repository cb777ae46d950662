"""Vision models of `timm` whose attentions have narrow heads, biases or windows."""

import timm
from onnx import ModelProto

from benchmarks.models.torch_models import export, noise

MODELS = {
    "levit_128s": "levit_128s",
    "levit_256": "levit_256",
    "maxvit_nano": "maxvit_nano_rw_256",
    "maxvit_tiny_tf": "maxvit_tiny_tf_224",
    "tiny_vit_5m": "tiny_vit_5m_224",
}
"""Name to that in `timm`."""


def make_timm(name: str) -> ModelProto:
    """Return the model `name` with weights of seed 0, for one image of its default size."""
    kind = MODELS[name]
    size = timm.get_pretrained_cfg(kind).input_size
    return export(lambda: timm.create_model(kind), lambda: noise((1, *size)))
