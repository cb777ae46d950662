"""Models of `transformers` and of `torch_definitions`, exported by `torch.onnx`."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from onnx import ModelProto
from torch import Tensor, nn

from benchmarks.models.torch_definitions import Branch, NasNetLike, RandWire, Repeat, UNet
from benchmarks.models.torch_sequences import (
    DecoderStep,
    Experts,
    HiFiGan,
    Recurrent,
    ResNet3d,
    WaveNet,
)

OPSET = 18


class OneOutput(nn.Module):
    """A model of `transformers` that takes one tensor and gives one."""

    def __init__(self, model: nn.Module, input: str, output: str) -> None:
        super().__init__()
        self.model, self.input, self.output = model, input, output

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.model(**{self.input: x}, return_dict=True), self.output)


def image() -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1)),)


def tokens(count: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return (torch.randint(0, 30000, (1, count), generator=generator),)


def vision(kind: str) -> nn.Module:
    """`ResNet`, `MobileNetV2` or `ViT` for 1000 classes, in the configuration of the paper."""
    config = getattr(transformers, f"{kind}Config")(num_labels=1000)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{kind}ForImageClassification")(config)
    return OneOutput(model, "pixel_values", "logits")


def resnet18() -> nn.Module:
    config = transformers.ResNetConfig(
        num_labels=1000,
        layer_type="basic",
        depths=[2, 2, 2, 2],
        hidden_sizes=[64, 128, 256, 512],
    )
    return OneOutput(transformers.ResNetForImageClassification(config), "pixel_values", "logits")


def bert() -> nn.Module:
    config = transformers.BertConfig(attn_implementation="eager")
    return OneOutput(transformers.BertModel(config), "input_ids", "last_hidden_state")


def gpt2(**sizes: int) -> nn.Module:
    """GPT-2, with other `sizes` than the small model's if they are given, such as `n_layer`."""
    config = transformers.GPT2Config(attn_implementation="eager", use_cache=False, **sizes)
    return OneOutput(transformers.GPT2LMHeadModel(config), "input_ids", "logits")


def gpt_neox() -> nn.Module:
    """Six layers of GPT-NeoX with 8 heads of 32."""
    config = transformers.GPTNeoXConfig(
        vocab_size=30000,
        hidden_size=256,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=1024,
        max_position_embeddings=512,
        attn_implementation="eager",
        use_cache=False,
    )
    return OneOutput(transformers.GPTNeoXForCausalLM(config), "input_ids", "logits")


def noise(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "bert_base": (bert, lambda: tokens(128)),
    "cond": (Branch, lambda: (torch.randn(4, 64),)),
    "decoder_step": (
        DecoderStep,
        lambda: noise((1, 1, 384), (4, 2, 6, 96, 64), (4, 2, 6, 1500, 64)),
    ),
    "experts": (Experts, lambda: noise((8, 512))),
    "gpt2": (gpt2, lambda: tokens(64)),
    "gpt_neox_32": (gpt_neox, lambda: tokens(128)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: noise((64, 1, 128))),
    "hifi_gan": (HiFiGan, lambda: noise((1, 80, 40))),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: noise((64, 1, 128))),
    "mobilenet_v2": (lambda: vision("MobileNetV2"), image),
    "nasnet_like": (NasNetLike, image),
    "randwire": (RandWire, image),
    "resnet18": (resnet18, image),
    "resnet3d": (ResNet3d, lambda: noise((1, 3, 8, 56, 56))),
    "resnet50": (lambda: vision("ResNet"), image),
    "unet": (UNet, image),
    "vit_base": (lambda: vision("ViT"), image),
    "wavenet": (WaveNet, lambda: noise((1, 1, 2000))),
    "while": (Repeat, lambda: (torch.randn(4, 64), torch.tensor(5))),
}
"""Name to what makes the module and its example inputs."""


OPEN: dict[str, tuple[str, dict[int, str]]] = {
    "bert_base_open": ("bert_base", {0: "batch", 1: "sequence"}),
    "resnet50_open": ("resnet50", {0: "batch"}),
}
"""Name to a model of the above and the dims of its input that stay open."""


def make_torch(name: str, dtype: torch.dtype = torch.float32) -> ModelProto:
    """Return the model `name` in opset 18, in evaluation mode, with weights and floats of
    `dtype`."""
    return export(*MODELS[name], dtype=dtype)


def make_open(name: str) -> ModelProto:
    """Return a model of `OPEN`."""
    closed, dims = OPEN[name]
    make_module, make_inputs = MODELS[closed]
    # An example of size 1 would be taken for a dim that is always 1.
    return export(make_module, lambda: tuple(torch.cat([x, x]) for x in make_inputs()), (dims,))


def export(
    make_module: Callable[[], nn.Module],
    make_inputs: Callable[[], tuple[Tensor, ...]],
    dynamic_shapes: tuple[dict[int, str], ...] | None = None,
    dtype: torch.dtype = torch.float32,
) -> ModelProto:
    """Return a module in evaluation mode with weights of seed 0, in opset 18."""
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in make_inputs())
    # Folded batch normalization would be f32.
    optimize = dtype != torch.bfloat16
    return export_module(with_weights(make_module, dtype), inputs, dynamic_shapes, optimize)


def export_module(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    dynamic_shapes: tuple[dict[int, str], ...] | None = None,
    optimize: bool = True,
) -> ModelProto:
    """Return a module as it is, in opset 18."""
    program: Any = torch.onnx.export(
        module,
        inputs,
        dynamic_shapes=dynamic_shapes,
        dynamo=True,
        opset_version=OPSET,
        optimize=optimize,
        verbose=False,
    )
    model: ModelProto = program.model_proto
    model.ir_version = min(model.ir_version, 10)
    return model


def with_weights(make_module: Callable[[], nn.Module], dtype: torch.dtype) -> nn.Module:
    """Return a module in evaluation mode, whose weights are always the same."""
    torch.manual_seed(0)
    module = make_module().eval().requires_grad_(False)
    randomize_statistics(module)
    return module.to(dtype)


def randomize_statistics(module: nn.Module) -> None:
    """Batch statistics as after training; those of a new module would make folding trivial."""
    generator = torch.Generator().manual_seed(2)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            shape = layer.running_mean.shape
            layer.running_mean.copy_(0.1 * torch.randn(shape, generator=generator))
            layer.running_var.copy_(0.5 + torch.rand(shape, generator=generator))
