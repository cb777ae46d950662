"""The backend of GPUs: its stages, NVIDIA's assembler, and its errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.gpu.codegen import machine_code
from braid.lowering.gpu.codegen.machine_code import assemble, cubin_of, find_tool, joined_ptx
from braid.lowering.gpu.fallback import emit_fallback
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.targets.machines.gpus import ARCHITECTURES, for_each_architecture, ptx_version
from braid.targets.machines.identity import machine_text
from braid.targets.machines.load import load_target
from braid.targets.machines.resolve import resolve_target

TARGET = "gpu-emulated"
MODEL = b"""
func.func @main(%x: tensor<6x40xf32> {braid.name = "x"}, %w: tensor<40x7xf32> {braid.name = "w"},
                %i: tensor<3xi64> {braid.name = "i"})
    -> (tensor<6x7xf32> {braid.name = "y"}, tensor<3x40xf32> {braid.name = "z"}) {
  %0 = braid.matmul %x, %w : (tensor<6x40xf32>, tensor<40x7xf32>) -> tensor<6x7xf32>
  %1 = braid.erf %0 : (tensor<6x7xf32>) -> tensor<6x7xf32>
  %2 = braid.pow %1, %1 : (tensor<6x7xf32>, tensor<6x7xf32>) -> tensor<6x7xf32>
  %y = braid.softmax %2 {dim = 1 : i64} : (tensor<6x7xf32>) -> tensor<6x7xf32>
  %z = braid.gather %x, %i {dim = 0 : i64} : (tensor<6x40xf32>, tensor<3xi64>) -> tensor<3x40xf32>
  func.return %y, %z : tensor<6x7xf32>, tensor<3x40xf32>
}
"""


@pytest.mark.parametrize(
    "architecture",
    [
        own if own in ("sm_80", "sm_90a") else pytest.param(own, marks=pytest.mark.slow)
        for own in ARCHITECTURES
    ],
)
def test_every_entry_passes_the_assembler(architecture: str) -> None:
    """It uses the oldest PTX that has the architecture, since drivers read no later version than
    theirs."""
    ptx = emit_model(MODEL, "ptx", CompileOptions(target=TARGET, gpu_arch=architecture))
    major, minor = ptx_version(architecture).removeprefix("+ptx")
    assert isinstance(ptx, str) and ptx.count(f".version {major}.{minor}") == 1
    assert f".target {architecture}\n" in ptx
    entries = set(re.findall(r"\.visible \.entry (\w+)", ptx))
    code = assemble(ptx.encode(), architecture)
    assert set(code.resources) == entries and len(entries) >= 3
    assert {own.spilled_bytes for own in code.resources.values()} == {0}
    assert code.code[:4] == b"\x7fELF"


@pytest.mark.parametrize(("extent", "wgmma"), [(2048, True), (1024, True), (24, False)])
def test_large_products_on_hopper_are_made_by_wgmma(extent: int, wgmma: bool) -> None:
    """`mma.sync` is credited with its own rate there, so that `gpu-hopper-gemm` is the faster."""
    type = f"tensor<{extent}x{extent}xbf16>"
    text = f"""func.func @main(%x: {type} {{braid.name = "x"}}, %w: {type} {{braid.name = "w"}})
        -> ({type} {{braid.name = "y"}}) {{
      %y = braid.matmul %x, %w : ({type}, {type}) -> {type}
      func.return %y : {type} }}"""
    ptx = emit_model(text.encode(), "ptx", CompileOptions(target="gpu-h100"))
    assert isinstance(ptx, str) and ("wgmma.mma_async" in ptx) == wgmma
    assert ("mma.sync.aligned" in ptx) != wgmma


def test_attention_on_hopper_is_made_by_wgmma() -> None:
    """From registers: weights of values."""
    q, k, s = (f"tensor<12x{shape}xf16>" for shape in ("512x64", "64x512", "512x512"))
    text = f"""func.func @main(%q: {q} {{braid.name = "q"}}, %k: {k} {{braid.name = "k"}},
        %v: {q} {{braid.name = "v"}}) -> ({q} {{braid.name = "y"}}) {{
      %s = braid.matmul %q, %k : ({q}, {k}) -> {s}
      %p = braid.softmax %s {{dim = 2 : i64}} : ({s}) -> {s}
      %y = braid.matmul %p, %v : ({s}, {q}) -> {q}
      func.return %y : {q} }}"""
    ptx = emit_model(text.encode(), "ptx", CompileOptions(target="gpu-h100"))
    assert isinstance(ptx, str) and ptx.count(".visible .entry") == 2  # one for unaligned buffers
    assert re.search(r"wgmma\.mma_async\S+ {[^}]*}, {", ptx)
    assert "mma.sync.aligned" not in ptx.replace("wgmma.mma_async.sync", "")


MIXED = b"""
!b = tensor<512x512xi8, #braid.layout<"ba">>
func.func @main(%x: tensor<512x512xui8> {braid.name = "x"}, %w: !b {braid.name = "w"},
                %z: tensor<8x8xf32> {braid.name = "z"})
    -> (tensor<512x512xi32> {braid.name = "y"}, tensor<8x8xf32> {braid.name = "v"}) {
  %y = braid.matmul %x, %w {accumulator = i32} : (tensor<512x512xui8>, !b) -> tensor<512x512xi32>
  %v = braid.tanh %z : (tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %y, %v : tensor<512x512xi32>, tensor<8x8xf32>
}
"""


def test_instructions_that_came_later() -> None:
    """Matmuls of mixed signs are in PTX since 8.4, and so is code assembled with them."""
    ptx = emit_model(MIXED, "ptx", CompileOptions(target="gpu-h100"))
    assert isinstance(ptx, str) and ".s32.u8.s8 " in ptx
    assert re.findall(r"^\.version (.*)", ptx, re.MULTILINE) == ["8.4"]
    assert len(assemble(ptx.encode(), "sm_90a").resources) >= 2


def test_joined_modules_have_the_latest_version() -> None:
    modules = [
        f".version {version}\n.target sm_90a\n.address_size 64\n{version}\n".encode()
        for version in ("8.0", "8.10", "8.4")
    ]
    joined = joined_ptx(modules).decode().split()
    assert joined[:6] == [".version", "8.10", ".target", "sm_90a", ".address_size", "64"]
    assert sorted(joined[6:]) == ["8.0", "8.10", "8.4"]


def test_machine_code_as_text() -> None:
    sass = emit_model(MODEL, "sass", CompileOptions(target=TARGET))
    assert isinstance(sass, str) and "FFMA" in sass and "EXIT" in sass


def test_rejected_code() -> None:
    with pytest.raises(BraidError, match="'ptxas' rejects the code: "):
        assemble(b".version 9.0\n.target sm_80\n.visible .entry k() { mystery; }\n", "sm_80")


def test_missing_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with pytest.raises(BraidError, match="'nvprofiler' of CUDA is not found") as error:
        find_tool("nvprofiler")
    assert error.value.hint is not None and "braid-compiler[gpu-check]" in error.value.hint


def test_the_artifact_holds_ptx_and_its_launches(tmp_path: Path) -> None:
    braid.compile(MODEL, target=TARGET, load=False).save(tmp_path / "m.braid")
    artifact = read_artifact(tmp_path / "m.braid")
    kinds = [code.kind for code in artifact.manifest.devices]
    texts = dict(zip(kinds, (c.tobytes().decode() for c in artifact.device_code), strict=True))
    assert set(texts) == {"ptx-sm_80", "gpu-launches-sm_80"}
    launched = {
        entry
        for kernel in json.loads(texts["gpu-launches-sm_80"])
        for launch in kernel["launches"]
        for entry in (launch["entry"], launch["unaligned_entry"])
        if entry is not None
    }
    assert launched == set(re.findall(r"\.visible \.entry (\w+)", texts["ptx-sm_80"]))


def test_the_artifact_holds_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is assembled once, and does not make other kernels of them."""
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "m.braid"
    braid.compile(MODEL, target=TARGET, gpu_arch="+cubin", load=False).save(path)
    artifact = read_artifact(path)
    codes = {
        code.kind: own.tobytes()
        for code, own in zip(artifact.manifest.devices, artifact.device_code, strict=True)
    }
    assert set(codes) == {"cubin-sm_80", "ptx-sm_80", "gpu-launches-sm_80"}
    monkeypatch.setattr(machine_code, "assemble", lambda *_: pytest.fail("it is assembled again"))
    assert cubin_of(codes["ptx-sm_80"], "sm_80") == codes["cubin-sm_80"]
    plain, wished = (
        resolve_target(TARGET, {"gpu-arch": own}).device("gpu:0").machine
        for own in ("sm_80", "sm_80,+cubin")
    )
    assert plain.name != wished.name and machine_text(plain) == machine_text(wished)


def test_a_kernel_that_fails_fails_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """If buffers are declared smaller than they are, the first access is out of bounds."""
    monkeypatch.setattr(emit_fallback, "buffer_bytes", lambda buffer, outside: 4)
    model = braid.compile(MODEL, target=TARGET)
    inputs = {
        "x": np.ones((6, 40), np.float32),
        "w": np.ones((40, 7), np.float32),
        "i": np.arange(3),
    }
    for _ in range(2):  # it is not forgotten
        with pytest.raises(BraidError, match=r"kernel_.*, block 0, thread \d+: .* which has 4"):
            model.run_named(inputs)


def test_architectures() -> None:
    target = resolve_target("gpu-h100", {"gpu-arch": "sm_120a"})
    machine = target.device("gpu:0").machine
    assert (machine.cpu, machine.fact("multiprocessors")) == ("sm_120a", 132)
    several = resolve_target("gpu-h100", {"gpu-arch": "sm_80,sm_120a"}).device("gpu:0").machine
    assert [own.features for own in for_each_architecture(several)] == ["+ptx80", "+ptx87"]
    for text in ("sm_90a,+tf32", "+tf32"):
        permitted = resolve_target("gpu-h100", {"gpu-arch": text}).device("gpu:0").machine
        assert (permitted.cpu, permitted.fact("tf32")) == ("sm_90a", 1) and not machine.fact(
            "tf32", 0
        )
    with pytest.raises(BraidError, match=r"'\+fast' is not what may be wished"):
        resolve_target("gpu-h100", {"gpu-arch": "sm_80,+fast"})
    with pytest.raises(BraidError, match="'sm_1' is not the architecture of a GPU"):
        resolve_target("gpu-h100", {"gpu-arch": "sm_1"})
    with pytest.raises(BraidError, match="target 'host' has no GPU"):
        resolve_target("host", {"gpu-arch": "sm_80"})


@pytest.mark.parametrize("name", ["gpu-a100", "gpu-h100", "gpu-h200", "gpu-l4", "gpu-emulated"])
def test_shipped_targets(name: str) -> None:
    target = load_target(name)
    device = target.device("gpu:0")
    assert target.default_device == device and target.host_device.backend == "cpu"
    assert device.machine.triple == "nvptx64-nvidia-cuda"
    emulated = dict(load_target("gpu-emulated").device("gpu:0").machine.facts)
    if name == "gpu-a100":
        assert dict(device.machine.facts) == emulated


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("#!/bin/sh\nexit 0\n", 0o755, "has written no machine code"),
        ("#!/bin/sh\nprintf '\\377'\nexit 3\n", 0o755, "rejects the code: \ufffd"),
        ("#!/bin/sh\nexit 3\n", 0o755, "rejects the code: no message, exit status 3"),
        ("#!/bin/sh\nexit 0\n", 0o644, "cannot be run: Permission denied"),
        ("not a program", 0o755, "cannot be run: Exec format error"),
    ],
    ids=["silent", "no text", "failing", "no right", "no program"],
)
def test_a_broken_assembler(
    content: str, mode: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text(content)
    tool.chmod(mode)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(BraidError, match=re.escape(message)):
        assemble(b"", "sm_80")
