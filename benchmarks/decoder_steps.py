"""Steps of a decoder whose cache grows, beside ONNX Runtime with I/O binding.

``python -m benchmarks.decoder_steps [--layers 6 --width 512 --weights int8] --json FILE`` makes a
decoder as exporters write it, with the keys and values of earlier tokens as inputs and outputs, and
runs both on one thread: first ``--tokens`` greedy tokens, which must be equal, then single steps
after caches of 16, 256 and 4,096 tokens, in turns. ONNX Runtime's outputs stay in its memory and
are bound as the next inputs. The exit status is 1 where tokens differ.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import braid
from benchmarks.arguments import count, output_file
from benchmarks.provenance import provenance

LENGTHS = (16, 256, 4096)
WEIGHTS = ("float32", "float16", "int8")
"""The types in which weights are stored."""
HEAD_WIDTH = 64
VOCABULARY = 4096
STATE = {"past.*": "present.*"}
_STEPS = 5
"""Steps of a turn, each after the same cache."""
_TURNS = 7


@dataclass(frozen=True)
class Row:
    """The seconds of a step after a cache of `past` tokens, medians over all turns."""

    past: int
    braid: float
    onnxruntime: float

    @property
    def ratio(self) -> float:
        """Return braid's time over ONNX Runtime's."""
        return self.braid / self.onnxruntime


def make_decoder(layers: int, width: int, kind: str = "float32") -> ModelProto:
    """Return a decoder with random weights; batch, new tokens and the cache are open.

    Weights are stored as `kind`, one of `WEIGHTS`, and computed with in f32.
    """
    nodes: list[NodeProto] = []
    random, weights = np.random.default_rng(0), list[TensorProto]()
    heads = width // HEAD_WIDTH
    cache = ["batch", heads, "past", HEAD_WIDTH]

    def stored(name: str, values: NDArray[Any]) -> str:
        weights.append(numpy_helper.from_array(values, name))
        return name

    def weight(name: str, *shape: int) -> str:
        values = (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        if kind == "float16":
            half = stored(f"{name}.stored", values.astype(np.float16))
            return node("Cast", [half], name, to=TensorProto.FLOAT)
        if kind == "int8":
            scale = np.abs(values).max(0) / 127
            whole = stored(f"{name}.stored", np.round(values / scale).astype(np.int8))
            factors = stored(f"{name}.scale", scale)
            return node("DequantizeLinear", [whole, factors], name, axis=1)
        return stored(name, values)

    def node(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    weights.append(numpy_helper.from_array(np.array([0, 0, heads, HEAD_WIDTH]), "split"))
    weights.append(numpy_helper.from_array(np.array([0, 0, width]), "join"))
    weights.append(numpy_helper.from_array(np.float32(HEAD_WIDTH**-0.5), "scale"))
    x = node("Gather", [weight("table", VOCABULARY, width), "ids"], "x")
    for layer in range(layers):
        for part in ("query", "key", "value"):
            h = node("MatMul", [x, weight(f"w{part}{layer}", width, width)], f"{part}{layer}")
            h = node("Reshape", [h, "split"], f"{part}{layer}.split")
            node("Transpose", [h], f"{part}{layer}.heads", perm=[0, 2, 1, 3])
        for part in ("key", "value"):
            parts = [f"past.{layer}.{part}", f"{part}{layer}.heads"]
            node("Concat", parts, f"present.{layer}.{part}", axis=2)
        keys = node("Transpose", [f"present.{layer}.key"], f"keys{layer}", perm=[0, 1, 3, 2])
        scores = node("MatMul", [f"query{layer}.heads", keys], f"scores{layer}")
        scores = node("Mul", [scores, "scale"], f"scaled{layer}")
        shares = node("Softmax", [scores], f"shares{layer}", axis=-1)
        read = node("MatMul", [shares, f"present.{layer}.value"], f"read{layer}")
        read = node("Transpose", [read], f"read{layer}.rows", perm=[0, 2, 1, 3])
        read = node("Reshape", [read, "join"], f"read{layer}.joined")
        read = node("MatMul", [read, weight(f"wread{layer}", width, width)], f"mixed{layer}")
        x = node("Add", [x, read], f"attended{layer}")
        inner = node("MatMul", [x, weight(f"wup{layer}", width, 4 * width)], f"up{layer}")
        inner = node("Relu", [inner], f"active{layer}")
        inner = node("MatMul", [inner, weight(f"wdown{layer}", 4 * width, width)], f"down{layer}")
        x = node("Add", [x, inner], f"layer{layer}")
    node("MatMul", [x, weight("head", width, VOCABULARY)], "logits")
    names = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    value = helper.make_tensor_value_info
    inputs = [value("ids", TensorProto.INT64, ["batch", "new"])]
    inputs += [value(f"past.{name}", TensorProto.FLOAT, cache) for name in names]
    grown = [*cache[:2], "total", HEAD_WIDTH]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "new", VOCABULARY])]
    outputs += [value(f"present.{name}", TensorProto.FLOAT, grown) for name in names]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class Peer:
    """ONNX Runtime whose outputs are bound as the next inputs."""

    def __init__(self, model: ModelProto) -> None:
        """Load the model on one thread."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._outputs = [output.name for output in self._session.get_outputs()]
        self.state: dict[str, Any] = {}

    def reset(self, state: dict[str, NDArray[Any]]) -> None:
        """Begin from these arrays."""
        make = onnxruntime.OrtValue.ortvalue_from_numpy
        self.state = {name: make(array) for name, array in state.items()}

    def step(self, ids: NDArray[Any], *, keep: bool = True) -> NDArray[Any]:
        """Run a step; `keep` the new state."""
        binding = self._session.io_binding()
        binding.bind_cpu_input("ids", ids)
        for name, value in self.state.items():
            binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        logits, *present = binding.get_outputs()
        if keep:
            self.state = dict(zip(self.state, present, strict=True))
        return logits.numpy()


def greedy(step: Any, prompt: NDArray[Any], tokens: int) -> Iterator[int]:
    """Yield the tokens that greedy decoding chooses."""
    logits = step(prompt)
    for _ in range(tokens):
        token = int(logits[0, -1].argmax())
        yield token
        logits = step(np.array([[token]]))


def cache_of(layers: int, width: int, past: int) -> dict[str, NDArray[Any]]:
    """Return a random cache of `past` tokens."""
    random, shape = np.random.default_rng(past), (1, width // HEAD_WIDTH, past, HEAD_WIDTH)
    names = [f"past.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return {name: random.standard_normal(shape).astype(np.float32) for name in names}


def seconds(run: Any) -> float:
    """Return the median time of the steps of a turn."""
    times: list[float] = []
    for _ in range(_STEPS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(model: braid.Model, peer: Peer, layers: int, width: int) -> Iterator[Row]:
    """Yield the times after each length, in turns."""
    ids = np.array([[7]])
    for past in LENGTHS:
        cache = cache_of(layers, width, past)
        session = model.session(capacity=past + _STEPS * _TURNS)
        session.reset(cache)
        peer.reset(cache)
        own, other = list[float](), list[float]()
        for _ in range(_TURNS):
            own.append(seconds(lambda s=session: s(ids)))
            other.append(seconds(lambda: peer.step(ids)))
        yield Row(past, statistics.median(own), statistics.median(other))


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=count, default=6)
    parser.add_argument("--width", type=count, default=512, help="a multiple of 64")
    parser.add_argument("--weights", choices=WEIGHTS, default=WEIGHTS[0])
    parser.add_argument("--tokens", type=count, default=2000)
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args()
    proto = make_decoder(options.layers, options.width, options.weights)
    model, peer = braid.compile(proto, state=STATE), Peer(proto)
    prompt = np.arange(8)[None]
    empty = cache_of(options.layers, options.width, 0)
    peer.reset(empty)
    own = list(greedy(model.session(), prompt, options.tokens))
    other = list(greedy(peer.step, prompt, options.tokens))
    equal = next(
        (i for i, pair in enumerate(zip(own, other, strict=True)) if len(set(pair)) > 1),
        options.tokens,
    )
    print(f"{equal} of {options.tokens} greedy tokens are equal")
    rows = list(measure(model, peer, options.layers, options.width))
    for row in rows:
        print(
            f"after {row.past}: braid {1e3 * row.braid:.2f} ms, ONNX Runtime "
            f"{1e3 * row.onnxruntime:.2f} ms, ratio {row.ratio:.2f}"
        )
    if options.json is not None:
        found = {
            **provenance(),
            "layers": options.layers,
            "width": options.width,
            "weights": options.weights,
            "tokens": options.tokens,
            "equal_tokens": equal,
            "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if equal == options.tokens else 1


if __name__ == "__main__":
    raise SystemExit(main())
