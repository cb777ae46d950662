"""The plugin `npu-sim` plays the streams of artifacts, and nothing else."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import ModelProto

import braid
from benchmarks.models import light
from benchmarks.models.hand_written import make_transformer_block
from braid.lowering.npu.backend import PLAN, STREAM
from braid.runtime.artifact import Artifact, SectionKind, read_artifact, write_artifact
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target
from braid.targets.simulator.happens_before import HappensBefore
from braid.targets.simulator.instructions import Instruction, Kind, Range, Stream
from braid.targets.simulator.simulate import simulate
from braid.targets.simulator.stream_bytes import from_bytes, to_bytes
from test.run.models.test_models import random_inputs
from test.unit.lowering.npu.test_models_on_chips import inception_block
from test.unit.runtime.test_run_model import run_model as run_model

CHIPS = ("npu-small", "npu-davinci")
Make = Callable[[], ModelProto]


def transformer() -> ModelProto:
    return make_transformer_block(16, 32, 2, 64)


def streams_of(artifact: Artifact) -> list[Stream]:
    codes = zip(artifact.manifest.devices, artifact.device_code, strict=True)
    return [from_bytes(code.tobytes()) for spec, code in codes if spec.kind == STREAM]


def check(proto: ModelProto, target: str, path: Path) -> None:
    """Compiled, and loaded again: results of the interpreter, times of the simulator."""
    model = braid.compile(proto, target=target, order_seconds=0)
    assert model.devices.get("npu:0") == "npu-sim"
    model.save(path)
    streams = streams_of(read_artifact(path))
    assert streams and all(stream.executes for stream in streams)
    chip = load_target(target).default_backend
    seconds = sum(simulate(stream, chip).seconds for stream in streams)
    inputs = random_inputs(proto, 0).values()
    expected = braid.interpret(proto)(*inputs)
    for each in (model, braid.load(path)):
        np.testing.assert_allclose(each(*inputs), expected, rtol=2e-4, atol=1e-5)
        assert each.launched_seconds()["npu:0"] == pytest.approx(seconds, abs=1e-8 * len(streams))


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("make", [transformer, inception_block])
def test_blocks(target: str, make: Make, tmp_path: Path) -> None:
    check(make(), target, tmp_path / "m.braid")


@pytest.mark.slow
@pytest.mark.parametrize("target", CHIPS)
def test_squeezenet(target: str, tmp_path: Path) -> None:
    check(light.make_light("squeezenet"), target, tmp_path / "m.braid")


def test_from_c(run_model: Path, tmp_path: Path) -> None:
    proto = inception_block()
    braid.compile(proto, target="npu-small", order_seconds=0).save(tmp_path / "m.braid")
    braid.compile(proto).save(tmp_path / "host.braid")
    norms = [
        float(
            subprocess.run(
                [run_model, tmp_path / name], capture_output=True, text=True, check=True
            ).stdout.split(": ")[1]
        )
        for name in ("m.braid", "host.braid")
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def with_bytes(artifact: Artifact, old: bytes, new: bytes, path: Path) -> Path:
    """Return a copy of the artifact whose code has other bytes in one place."""
    code = artifact.code.tobytes()
    assert len(old) == len(new) and code.count(old) == 1
    weights = artifact._checked(SectionKind.WEIGHTS)  # pyright: ignore[reportPrivateUsage]
    write_artifact(path, artifact.manifest, code.replace(old, new), weights)
    return path


def with_instruction(stream: Stream, place: int, instruction: Instruction) -> Stream:
    listed = [*stream.instructions]
    listed[place] = instruction
    return replace(stream, instructions=tuple(listed))


def without_sync(stream: Stream) -> Stream:
    """Change the first wait that matters so that it waits for nothing, while its event takes
    long."""
    order = HappensBefore(stream)
    for place, sync in enumerate(stream.instructions):
        after = stream.instructions[place + 1 : place + 2]
        if sync.kind is Kind.SYNC and after and after[0].kind is not Kind.SYNC:
            own = [n for n in range(place) if stream.instructions[n].unit == sync.unit]
            harmless = own[-1] if own else place - 1
            late = replace(stream.instructions[sync.amount], seconds=1.0)
            gone = with_instruction(stream, place, replace(sync, amount=harmless))
            if not HappensBefore(gone).is_before(sync.amount, place + 1):
                assert order.is_before(sync.amount, place + 1)
                return with_instruction(gone, sync.amount, late)
    raise AssertionError("nothing waits")


def shifted(stream: Stream) -> Stream:
    """Let a compute instruction read four bytes further on."""
    for place, instruction in enumerate(stream.instructions):
        access = instruction.access
        if access is not None and access.kernel and access.reads and not access.tensors:
            first, *rest = access.reads
            moved = replace(access, reads=(Range(first.address + 4, first.size), *rest))
            return with_instruction(stream, place, replace(instruction, access=moved))
    raise AssertionError("nothing is computed")


def freed_early(stream: Stream) -> Stream:
    """Free the data of a load before it is read."""
    for number, buffer in enumerate(stream.buffers):
        if stream.instructions[buffer.first].kind is Kind.LOAD and buffer.last:
            last = (buffer.first,) * len(buffer.last)
            buffers = [*stream.buffers]
            buffers[number] = replace(buffer, last=last)
            return replace(stream, buffers=tuple(buffers))
    raise AssertionError("nothing is loaded")


def is_caught(path: Path, proto: ModelProto) -> bool:
    """Whether the artifact is refused by name, or its results are wrong."""
    inputs = random_inputs(proto, 0).values()
    try:
        made = braid.load(path)(*inputs)
    except BraidError as error:
        assert error.message
        return True
    return not np.allclose(made, braid.interpret(proto)(*inputs), rtol=2e-4, atol=1e-5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("played") / "m.braid"
    braid.compile(transformer(), target="npu-small", order_seconds=0).save(path)
    return path


@pytest.mark.parametrize("mutate", [without_sync, shifted, freed_early])
def test_a_mutated_stream_is_caught(
    mutate: Callable[[Stream], Stream], saved: Path, tmp_path: Path
) -> None:
    artifact = read_artifact(saved)
    (stream,) = streams_of(artifact)
    changed = to_bytes(mutate(stream))
    path = with_bytes(artifact, to_bytes(stream), changed, tmp_path / "m.braid")
    assert is_caught(path, transformer())


def test_an_address_beyond_the_memory_is_refused(saved: Path, tmp_path: Path) -> None:
    artifact = read_artifact(saved)
    (stream,) = streams_of(artifact)
    first = stream.buffers[0]
    beyond = replace(first, address=load_target("npu-small").default_backend.memories[0].bytes)
    changed = to_bytes(replace(stream, buffers=(beyond, *stream.buffers[1:])))
    path = with_bytes(artifact, to_bytes(stream), changed, tmp_path / "m.braid")
    with pytest.raises(BraidError, match=r"npu:0.*the stream uses bytes 2097152 to"):
        braid.load(path)(*random_inputs(transformer(), 0).values())


def check_damage(saved: Path, path: Path, kind: str, seeds: range) -> None:
    """Any byte of code is changed: loading refuses it, or a run ends with some result."""
    artifact = read_artifact(saved)
    codes = zip(artifact.manifest.devices, artifact.device_code, strict=True)
    (whole,) = (code.tobytes() for spec, code in codes if spec.kind == kind)
    inputs = random_inputs(transformer(), 0).values()
    for seed in seeds:
        random, data = Random(seed), bytearray(whole)
        for _ in range(1 + seed % 3):
            data[random.randrange(len(data) - 32)] ^= 1 << random.randrange(8)
        try:
            braid.load(with_bytes(artifact, whole, bytes(data), path))(*inputs)
        except BraidError as error:
            assert error.message


@pytest.mark.parametrize("kind", [STREAM, PLAN])
def test_damaged_code_does_not_crash(saved: Path, kind: str, tmp_path: Path) -> None:
    check_damage(saved, tmp_path / "m.braid", kind, range(60))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [STREAM, PLAN])
def test_much_damaged_code_does_not_crash(saved: Path, kind: str, tmp_path: Path) -> None:
    check_damage(saved, tmp_path / "m.braid", kind, range(100, 3000))
