"""Decoders that read an encoder's output, token by token, beside ONNX Runtime."""

import numpy as np
import pytest

import braid
from benchmarks.decoder_steps import Peer, own_tokens, peer_tokens
from benchmarks.decoders import decoder_of


@pytest.mark.parametrize("kind", ["t5", "whisper"])
def test_greedy_tokens_are_those_of_onnx_runtime(kind: str) -> None:
    decoder = decoder_of(kind, layers=1, width=128, weights="float32")
    model = braid.compile(decoder.step, state=decoder.state)
    assert set(model.appended_state) == set(decoder.cache(0))
    tokens = own_tokens(decoder, model, 30)
    assert len(set(tokens)) > 5
    np.testing.assert_array_equal(tokens, peer_tokens(decoder, Peer(decoder.step), 30))
