"""Steps of a decoder whose cache grows, beside ONNX Runtime with I/O binding.

``python -m benchmarks.decoder_steps [--model t5 --layers 6 --width 512] --json FILE`` makes a
decoder as exporters write it, with the keys and values of earlier tokens as inputs and outputs, and
runs both on one thread: first ``--tokens`` greedy tokens, which must be equal, then single steps
after caches of 16, 256 and 4,096 tokens, in turns, and at last ``--long`` steps, after which the
process must be as large as before. ONNX Runtime's outputs stay in its memory and are bound as the
next inputs. The exit status is 1 where tokens differ or memory is lost.

Decoders that read an encoder's output (``--model t5`` or ``whisper``) have a separate graph for the
prompt, whose keys and values of the encoder every step uses unchanged.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

import braid
from benchmarks.arguments import count, output_file
from benchmarks.decoders import KINDS, Arrays, Decoder, decoder_of, first_input
from benchmarks.models.plain_decoder import WEIGHTS
from benchmarks.provenance import provenance

LENGTHS = (16, 256, 4096)
_STEPS = 5
"""Steps of a turn, each after the same cache."""
_TURNS = 7
_LONG_CACHE = 64
"""Tokens before each of many steps."""
_ALLOWED_GROWTH = 1 << 20
"""Bytes that the process may be larger after many steps: pages of the allocator."""

Step = Callable[[NDArray[Any]], NDArray[Any]]
"""Returns the logits of tokens, and goes on to the next state."""


@dataclass(frozen=True)
class Row:
    """The CPU seconds of a step after a cache of `past` tokens, medians over all turns."""

    past: int
    braid: float
    onnxruntime: float

    @property
    def ratio(self) -> float:
        """Return braid's time over ONNX Runtime's."""
        return self.braid / self.onnxruntime


class Peer:
    """ONNX Runtime whose outputs are bound as the next inputs."""

    def __init__(self, model: ModelProto) -> None:
        """Load the model on one thread."""
        self._session = _session(model)
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._ids = first_input(model)
        self.state: dict[str, Any] = {}
        self.fixed: dict[str, Any] = {}

    def reset(self, state: Arrays, fixed: Arrays) -> None:
        """Begin from these arrays; those that are `fixed` are inputs of every step."""
        make = onnxruntime.OrtValue.ortvalue_from_numpy
        self.state = {name: make(array) for name, array in state.items()}
        self.fixed = {name: make(array) for name, array in fixed.items()}

    def step(self, ids: NDArray[Any], *, keep: bool = True) -> NDArray[Any]:
        """Run a step; `keep` the new state."""
        binding = self._session.io_binding()
        binding.bind_cpu_input(self._ids, ids)
        for name, value in (self.state | self.fixed).items():
            binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        logits, *present = binding.get_outputs()
        if keep:
            self.state = dict(zip(self.state, present, strict=True))
        return logits.numpy()


def _session(model: ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # the graph for prompts reads no earlier tokens
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def greedy(logits: NDArray[Any], step: Step, tokens: int) -> Iterator[int]:
    """Yield the tokens that greedy decoding chooses after the logits of a prompt."""
    for _ in range(tokens):
        token = int(logits[0, -1].argmax())
        yield token
        logits = step(np.array([[token]]))


def own_tokens(decoder: Decoder, model: braid.Model, tokens: int) -> list[int]:
    """Return what braid's greedy decoding chooses."""
    session, given = model.session(), decoder.prompt_inputs()
    if decoder.prompt is None:
        return list(greedy(session(given), session, tokens))
    prompt = braid.compile(decoder.prompt)
    found = dict(zip((each.name for each in prompt.outputs), prompt(given), strict=True))
    caches = _as_inputs(found)
    fixed = decoder.fixed() | caches
    session.reset({name: fixed.pop(name) for name in decoder.cache(0)})
    name = first_input(decoder.step)
    return list(greedy(found["logits"], lambda ids: session({name: ids, **fixed}), tokens))


def peer_tokens(decoder: Decoder, peer: Peer, tokens: int) -> list[int]:
    """Return what ONNX Runtime's greedy decoding chooses."""
    given = decoder.prompt_inputs()
    if decoder.prompt is None:
        peer.reset(decoder.cache(0), {})
        return list(greedy(peer.step(given[first_input(decoder.step)]), peer.step, tokens))
    prompt = _session(decoder.prompt)
    names = [output.name for output in prompt.get_outputs()]
    found: Arrays = dict(zip(names, prompt.run(None, given), strict=True))
    fixed = decoder.fixed() | _as_inputs(found)
    peer.reset({name: fixed.pop(name) for name in decoder.cache(0)}, fixed)
    return list(greedy(found["logits"], peer.step, tokens))


def _as_inputs(outputs: Arrays) -> Arrays:
    """Return the caches that the graph of a prompt returns, by the names of a step's inputs."""
    parts = ((name.partition("."), array) for name, array in outputs.items())
    return {f"past_key_values.{rest}": array for (_, dot, rest), array in parts if dot}


def seconds(run: Callable[[], object]) -> float:
    """Return the median CPU time of the steps of a turn: other work on the machine has no part."""
    times: list[float] = []
    for _ in range(_STEPS):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def measure(decoder: Decoder, model: braid.Model, peer: Peer) -> Iterator[Row]:
    """Yield the times after each length, in turns."""
    fixed, ids = decoder.fixed(), np.array([[7]])
    given = {first_input(decoder.step): ids, **fixed}
    for past in LENGTHS:
        cache = decoder.cache(past)
        session = model.session(capacity=past + _STEPS * _TURNS)
        session.reset(cache)
        peer.reset(cache, fixed)
        own, other = list[float](), list[float]()
        for _ in range(_TURNS):
            own.append(seconds(lambda s=session: s(given)))
            other.append(seconds(lambda: peer.step(ids)))
        yield Row(past, statistics.median(own), statistics.median(other))


def growth(decoder: Decoder, model: braid.Model, steps: int) -> int:
    """Return by how many bytes the process is larger after many steps than after a few."""
    given = {first_input(decoder.step): np.array([[7]]), **decoder.fixed()}
    cache, before = decoder.cache(_LONG_CACHE), 0
    session = model.session(capacity=2 * _LONG_CACHE)
    for done in range(steps):
        if done % _LONG_CACHE == 0:
            session.reset(cache)
        session(given)
        if done == min(2 * _LONG_CACHE, steps // 2):
            before = _resident_bytes()
    return _resident_bytes() - before


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", choices=KINDS, default=KINDS[0])
    parser.add_argument("--layers", type=count, default=6)
    parser.add_argument("--width", type=count, default=512, help="a multiple of 64")
    parser.add_argument("--weights", choices=WEIGHTS, default=WEIGHTS[0], help="of a plain decoder")
    parser.add_argument("--tokens", type=count, default=2000)
    parser.add_argument("--long", type=count, default=10000, help="steps that must lose no memory")
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args()
    decoder = decoder_of(options.model, options.layers, options.width, options.weights)
    model, peer = braid.compile(decoder.step, state=decoder.state), Peer(decoder.step)
    own = own_tokens(decoder, model, options.tokens)
    other = peer_tokens(decoder, peer, options.tokens)
    differs = (i for i, pair in enumerate(zip(own, other, strict=True)) if len(set(pair)) > 1)
    equal = next(differs, options.tokens)
    print(f"{equal} of {options.tokens} greedy tokens are equal, {len(set(own))} are distinct")
    rows = list(measure(decoder, model, peer))
    for row in rows:
        print(
            f"after {row.past}: braid {1e3 * row.braid:.2f} ms, ONNX Runtime "
            f"{1e3 * row.onnxruntime:.2f} ms, ratio {row.ratio:.2f}"
        )
    grown = growth(decoder, model, options.long)
    print(f"{grown} bytes more after {options.long} steps")
    if options.json is not None:
        found = {
            **provenance(("onnxruntime",)),
            "model": options.model,
            "layers": options.layers,
            "width": options.width,
            "weights": options.weights,
            "tokens": options.tokens,
            "equal_tokens": equal,
            "distinct_tokens": len(set(own)),
            "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
            "steps": options.long,
            "grown_bytes": grown,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if equal == options.tokens and grown <= _ALLOWED_GROWTH else 1


if __name__ == "__main__":
    raise SystemExit(main())
