"""Decoders that read an encoder's output, like those of T5 and Whisper, as Optimum exports them.

There are two graphs with the same weights. The first one takes the prompt and the encoder's output,
and returns all keys and values; the other one takes them as `past_key_values.0.decoder.key` and
`past_key_values.0.encoder.key`, and returns the grown ones as `present.0.decoder.key`. Keys and
values of the encoder are computed once and never change.

T5 adds a bias by relative position to scores and masks the encoder's rows (Raffel et al.,
"Exploring the limits of transfer learning", 2020); Whisper has learned positions and biases
(Radford et al., "Robust speech recognition", 2022).
"""

from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from benchmarks.models.control_flow.builder import Body, Weights, finish

HEAD_WIDTH = 64
VOCABULARY = 4096
POSITIONS = 8192
"""The learned positions: more than Whisper's 448, so that long caches can be timed."""
PARTS = ("key", "value")
_LEAST = float(np.finfo(np.float32).min)
_BUCKETS, _MOST_DISTANT = 32, 128
_KINDS = ("t5", "whisper")


@dataclass(frozen=True)
class Sizes:
    """The sizes of a decoder; `width` is a multiple of 64."""

    layers: int
    width: int

    @property
    def heads(self) -> int:
        """Return the number of heads."""
        return self.width // HEAD_WIDTH


def make_decoder(kind: str, sizes: Sizes, *, is_step: bool) -> ModelProto:
    """Return the graph for steps, or the one for the prompt, of a decoder like `kind`.

    Inputs: `input_ids[batch, new]`; for the prompt graph `encoder_hidden_states[batch, source,
    width]`, for the step graph the caches `[batch, heads, past or source, 64]`; for `t5` also
    `encoder_attention_mask[batch, source]`. Outputs: `logits[batch, new, 4096]` and caches.
    """
    return _Decoder(kind, sizes, is_step).model()


class _Decoder(Body):
    """One of the two graphs; equal names have equal weights."""

    def __init__(self, kind: str, sizes: Sizes, is_step: bool) -> None:
        super().__init__(Weights(0))
        self._is_t5, self._sizes, self._is_step = kind == _KINDS[0], sizes, is_step
        self._present: dict[str, str] = {}

    def model(self) -> ModelProto:
        width = self._sizes.width
        total, positions = self._positions()
        x = self.op("Gather", self._matrix("table", VOCABULARY, width, scale=1.0), "input_ids")
        if not self._is_t5:
            learned = self._matrix("positions", POSITIONS, width, scale=0.1)
            x = self.op("Add", x, self.op("Gather", learned, positions))
        own = self._causal_bias(total, positions)
        source = self._source_bias() if self._is_t5 else None
        for layer in range(self._sizes.layers):
            x = self._layer(f"{layer}.decoder", x, own)
            x = self._layer(f"{layer}.encoder", x, source)
            x = self.op("Add", x, self._inner(layer, self._normal(f"{layer}.inner", x)))
        x = self._normal("last", x)
        if self._is_t5:
            x = self.op("Mul", x, self.constant(width**-0.5, np.float32))
        logits = self.op("MatMul", x, self._matrix("head", width, VOCABULARY, scale=1.0))
        return finish(self, self._graph(logits))

    def _positions(self) -> tuple[str, str]:
        """Return the number of all tokens, and the numbers of the new ones."""
        past = "past_key_values.0.decoder.key"
        start = self._extent(past, 2) if self._is_step else self.constant(0)
        end = self.op("Add", start, self._extent("input_ids", 1))
        return end, self.op("Range", start, end, self.constant(1))

    def _extent(self, tensor: str, dim: int) -> str:
        return self.op("Gather", self.op("Shape", tensor), self.constant(dim))

    def _causal_bias(self, total: str, positions: str) -> str:
        """Return what is added to scores of earlier tokens, `[1, heads or 1, new, total]`."""
        keys = self.op("Range", self.constant(0), total, self.constant(1))
        keys = self.op("Unsqueeze", keys, self.constant([0]))
        queries = self.op("Unsqueeze", positions, self.constant([1]))
        is_seen = self.op("LessOrEqual", keys, queries)
        nothing, least = self.constant(0, np.float32), self.constant(_LEAST, np.float32)
        mask = self.op("Where", is_seen, nothing, least)
        mask = self.op("Unsqueeze", mask, self.constant([0, 1]))
        if not self._is_t5:
            return mask
        buckets = self._buckets(self.op("Sub", keys, queries))
        table = self._matrix("relative", _BUCKETS, self._sizes.heads, scale=1.0)
        bias = self.op("Transpose", self.op("Gather", table, buckets), perm=[2, 0, 1])
        return self.op("Add", self.op("Unsqueeze", bias, self.constant([0])), mask)

    def _buckets(self, relative: str) -> str:
        """Return the rows of the table of biases: one a distance at first, then by logarithms."""
        exact = _BUCKETS // 2
        distance = self.op("Neg", self.op("Min", relative, self.constant(0)))
        ratio = self.op("Cast", distance, to=TensorProto.FLOAT)
        ratio = self.op("Div", ratio, self.constant(exact, np.float32))
        factor = exact / np.log(_MOST_DISTANT / exact)
        log = self.op("Mul", self.op("Log", ratio), self.constant(factor, np.float32))
        far = self.op("Cast", log, to=TensorProto.INT64)
        far = self.op("Add", far, self.constant(exact))
        far = self.op("Min", far, self.constant(_BUCKETS - 1))
        is_near = self.op("Less", distance, self.constant(exact))
        return self.op("Where", is_near, distance, far)

    def _source_bias(self) -> str:
        """Return what is added to the scores of the encoder's rows, `[batch, 1, 1, source]`."""
        mask = self.op("Cast", "encoder_attention_mask", to=TensorProto.FLOAT)
        mask = self.op("Unsqueeze", mask, self.constant([1, 2]))
        mask = self.op("Sub", self.constant(1, np.float32), mask)
        return self.op("Mul", mask, self.constant(_LEAST, np.float32))

    def _layer(self, name: str, x: str, bias: str | None) -> str:
        """Return `x` with what it reads of a cache added."""
        rows = self._normal(name, x)
        query = self._heads(self._linear(f"{name}.query", rows))
        if not self._is_t5:
            query = self.op("Mul", query, self.constant(HEAD_WIDTH**-0.5, np.float32))
        key, value_ = (self._cache(f"{name}.{part}", rows) for part in PARTS)
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        if bias is not None:
            scores = self.op("Add", scores, bias)
        read = self.op("MatMul", self.op("Softmax", scores, axis=-1), value_)
        read = self.op("Transpose", read, perm=[0, 2, 1, 3])
        read = self.reshape(read, 0, 0, self._sizes.width)
        return self.op("Add", x, self._linear(f"{name}.out", read))

    def _cache(self, name: str, rows: str) -> str:
        """Return all keys or values of a layer, and let the graph return those that are new."""
        past, is_own = f"past_key_values.{name}", ".decoder." in name
        if self._is_step and not is_own:
            return past
        new = self._heads(self._linear(name, rows if is_own else "encoder_hidden_states"))
        if self._is_step:
            new = self.op("Concat", past, new, axis=2)
        self._present[f"present.{name}"] = new
        return new

    def _heads(self, rows: str) -> str:
        split = self.reshape(rows, 0, 0, self._sizes.heads, HEAD_WIDTH)
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def _normal(self, name: str, x: str) -> str:
        factors = self._matrix(f"{name}.factors", self._sizes.width, scale=0.1, middle=1.0)
        if not self._is_t5:
            offsets = self._matrix(f"{name}.offsets", self._sizes.width, scale=0.1)
            return self.op("LayerNormalization", x, factors, offsets, axis=-1)
        square = self.op("Pow", x, self.constant(2, np.float32))
        mean = self.op("ReduceMean", square, self.constant([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-6, np.float32)))
        return self.op("Mul", self.op("Div", x, root), factors)

    def _inner(self, layer: int, rows: str) -> str:
        width = self._sizes.width
        up = self._linear(f"{layer}.up", rows, columns=4 * width)
        up = self.op("Relu", up) if self._is_t5 else self._gelu(up)
        return self._linear(f"{layer}.down", up, rows_of=4 * width)

    def _gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.constant(2**0.5, np.float32)))
        product = self.op("Mul", x, self.op("Add", erf, self.constant(1, np.float32)))
        return self.op("Mul", product, self.constant(0.5, np.float32))

    def _linear(self, name: str, x: str, rows_of: int = 0, columns: int = 0) -> str:
        rows, columns = rows_of or self._sizes.width, columns or self._sizes.width
        product = self.op("MatMul", x, self._matrix(name, rows, columns, scale=rows**-0.5))
        if self._is_t5 or name.endswith(".key"):
            return product
        return self.op("Add", product, self._matrix(f"{name}.bias", columns, scale=0.1))

    def _matrix(self, name: str, *shape: int, scale: float, middle: float = 0.0) -> str:
        values = np.random.default_rng(list(name.encode())).standard_normal(shape)
        tensor = numpy_helper.from_array((middle + scale * values).astype(np.float32), name)
        self.weights.tensors.append(tensor)
        return name

    def _graph(self, logits: str) -> GraphProto:
        sizes, value = self._sizes, helper.make_tensor_value_info
        shape: list[str | int]
        inputs = [value("input_ids", TensorProto.INT64, ["batch", "new"])]
        if self._is_t5:
            mask = value("encoder_attention_mask", TensorProto.INT64, ["batch", "source"])
            inputs.append(mask)
        if not self._is_step:
            inputs.append(
                value("encoder_hidden_states", TensorProto.FLOAT, ["batch", "source", sizes.width])
            )
        outputs = [value("logits", TensorProto.FLOAT, ["batch", "new", VOCABULARY])]
        for name in cache_names(sizes):
            length = "source" if ".encoder." in name else "past"
            shape = ["batch", sizes.heads, length, HEAD_WIDTH]
            if self._is_step:
                inputs.append(value(f"past_key_values.{name}", TensorProto.FLOAT, shape))
                shape[2] = "total"
            if f"present.{name}" in self._present:
                outputs.append(value(f"present.{name}", TensorProto.FLOAT, shape))
        results = [logits, *(self._present[each.name] for each in outputs[1:])]
        return self.graph("decoder", inputs, outputs, results)


def cache_names(sizes: Sizes) -> list[str]:
    """Return the names of all caches, without `past_key_values.` or `present.`."""
    return [
        f"{layer}.{side}.{part}"
        for layer in range(sizes.layers)
        for side in ("decoder", "encoder")
        for part in PARTS
    ]
