"""Decoders for measurements of steps: their graphs, states, and random inputs of any length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper

from benchmarks.models.encoder_decoders import Sizes, make_decoder
from benchmarks.models.plain_decoder import make_plain_decoder

Arrays = dict[str, NDArray[Any]]
KINDS = ("plain", "t5", "whisper")
_PROMPT = 8
_SOURCES = {"t5": 384, "whisper": 1500}
"""The rows of an encoder's output."""
_SEEN = 0.9
"""The fraction of them that a mask lets through."""


@dataclass(frozen=True)
class Decoder:
    """The graph of steps, and the graph of the prompt if there is a separate one."""

    step: ModelProto
    state: Mapping[str, str]
    prompt: ModelProto | None
    source: int

    def cache(self, past: int) -> Arrays:
        """Return random states of `past` tokens, by the names of the inputs of a step."""
        return self._inputs(self.step, "past", past)

    def fixed(self) -> Arrays:
        """Return random values of what no step changes, such as an encoder's keys and values."""
        return self._inputs(self.step, "source", 0)

    def prompt_inputs(self) -> Arrays:
        """Return the inputs of the graph of the prompt, without that graph the tokens alone."""
        tokens: Arrays = {first_input(self.step): np.arange(_PROMPT)[None]}
        return tokens | ({} if self.prompt is None else self._inputs(self.prompt, "source", 0))

    def _inputs(self, graph: ModelProto, having: str, past: int) -> Arrays:
        """Return random arrays for the inputs that have a dim of this name."""
        sizes, found = {"batch": 1, "past": past, "source": self.source}, Arrays()
        for spec in graph.graph.input:
            dims = spec.type.tensor_type.shape.dim
            if having not in [dim.dim_param for dim in dims]:
                continue
            shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims]
            dtype = helper.tensor_dtype_to_np_dtype(spec.type.tensor_type.elem_type)
            random = np.random.default_rng([past, *spec.name.encode()])
            is_mask = np.issubdtype(dtype, np.integer)
            array = random.random(shape) < _SEEN if is_mask else random.standard_normal(shape)
            found[spec.name] = array.astype(dtype)
        return found


def first_input(model: ModelProto) -> str:
    """Return the name of the input that takes tokens."""
    return model.graph.input[0].name


def decoder_of(kind: str, layers: int, width: int, weights: str) -> Decoder:
    """Return a decoder of one of `KINDS`; `weights` is the type that a plain one's have."""
    if kind == "plain":
        step = make_plain_decoder(layers, width, weights)
        return Decoder(step, {"past.*": "present.*"}, None, 0)
    sizes = Sizes(layers, width)
    prompt, step = (make_decoder(kind, sizes, is_step=own) for own in (False, True))
    names = (f"{layer}.decoder.*" for layer in range(layers))
    state = {f"past_key_values.{name}": f"present.{name}" for name in names}
    return Decoder(step, state, prompt, _SOURCES[kind])


def read_bytes(decoder: Decoder, past: int) -> int:
    """Return the bytes of weights and caches that a step has to read after `past` tokens.

    For tables that are only gathered from, this is a row.
    """
    nodes, weights = decoder.step.graph.node, 0
    for tensor in decoder.step.graph.initializer:
        size = len(tensor.raw_data)
        weights += size // tensor.dims[0] if _is_table(nodes, tensor.name) else size
    caches = [*decoder.cache(past).values(), *decoder.fixed().values()]
    return weights + sum(array.nbytes for array in caches)


def _is_table(nodes: Sequence[NodeProto], name: str) -> bool:
    """Return whether a weight, or what it is stored as, is only gathered from."""
    readers = [node for node in nodes if name in node.input]
    if len(readers) == 1 and readers[0].op_type in ("Cast", "DequantizeLinear"):
        return readers[0].input[0] == name and _is_table(nodes, readers[0].output[0])
    return bool(readers) and all(
        node.op_type == "Gather" and node.input[0] == name for node in readers
    )
