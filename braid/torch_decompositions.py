"""Decompositions of PyTorch's ops that its exporter lacks or exports wrongly."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

torch: Any = import_module("torch")  # by name, since checks of types run without it
_aten = torch.ops.aten
_linear: Any = torch.nn.functional.linear

_AS_PYTORCH_HAS_THEM = (
    _aten._native_batch_norm_legit,
    _aten._native_batch_norm_legit_functional,
    _aten.native_batch_norm,
)
"""The ops the exporter translates wrongly in training, and PyTorch itself expresses by others."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the replacements, by op, that AOTAutograd is to trace."""
    return {
        **torch._decomp.get_decompositions(_AS_PYTORCH_HAS_THEM),
        _aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
        _aten._native_multi_head_attention.default: _multi_head_attention,
        _aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    }


def _attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    """Compute attention `[batch, heads, rows, width]`, and the logarithms of its sums.

    The exporter turns these logarithms, from which the backward graph computes gradients, into
    zeros.
    """
    if dropout_p != 0:
        return NotImplemented
    wide = torch.promote_types(query.dtype, torch.float32)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if key.shape[1] != query.shape[1]:  # groups of heads share keys and values
        group = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(group, 1) for each in (key, value))
    scores = torch.matmul(query.to(wide), key.to(wide).transpose(-2, -1)) * factor
    if is_causal:
        rows, columns = (torch.arange(scores.shape[dim], device=scores.device) for dim in (-2, -1))
        scores = scores.masked_fill(rows[:, None] < columns, -torch.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    result = torch.matmul(torch.softmax(scores, -1), value.to(wide)).to(query.dtype)
    logarithms = torch.logsumexp(scores, -1)
    if attn_mask is not None:  # PyTorch has zeros for rows that see no key at all
        unseen = (attn_mask == -torch.inf).all(-1, keepdim=True)
        result = torch.where(unseen, 0.0, result)
        logarithms = torch.where(unseen.squeeze(-1), 0.0, logarithms)
    return result, logarithms


def _multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Compute `nn.MultiheadAttention` in evaluation mode, on `[batch, rows, embed_dim]`."""
    width = embed_dim // num_head
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (
        _linear(x, weight, bias).unflatten(-1, (num_head, width)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    scores = torch.matmul(q * width**-0.5, k.transpose(-2, -1))
    if mask is not None:
        of_keys = mask_type == 1  # [batch, keys], where others have rows too
        masked = mask.to(torch.bool)
        scores = scores.masked_fill(masked[:, None, None, :] if of_keys else masked, -torch.inf)
    attention = torch.softmax(scores, -1)
    result = torch.matmul(attention, v).transpose(1, 2).flatten(2)
    if not need_weights:
        attention = None
    elif average_attn_weights:
        attention = attention.mean(1)
    return _linear(result, proj_weight, proj_bias), attention


def _encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Compute `nn.TransformerEncoderLayer` in evaluation mode, on `[batch, rows, embed_dim]`."""
    activation = torch.nn.functional.gelu if use_gelu else torch.relu

    def attend(x: Any) -> Any:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _multi_head_attention(
            x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed_forward(x: Any) -> Any:
        return _linear(activation(_linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def first_norm(x: Any) -> Any:
        return torch.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Any) -> Any:
        return torch.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(first_norm(src))
        return x + feed_forward(second_norm(x))
    x = first_norm(src + attend(src))
    return second_norm(x + feed_forward(x))
