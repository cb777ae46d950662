"""Each device's backend prepares what runs there, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp

import braid.passes.preparation.prepare_backends as prepare_backends
from braid.dialects.braid.attribute_names import SPLIT, STREAMS
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.pooling import PoolOp
from braid.driver.pipeline import graph_passes
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.backend import Job, Preparation
from braid.targets.backends import kernel_families
from braid.targets.machines.load import load_target
from braid.targets.machines.resolve import resolve_target
from braid.universe import make_context

POOL = (
    'kind = "max", window = array<i64: 3, 3>, strides = array<i64: 1, 1>, '
    "dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>"
)
SPLIT_OVER_TWO = f"""
!t = tensor<1x4x64x64xf32>
func.func @main(%x: !t) -> (!t, !t) {{
  %0 = braid.pool %x {{{POOL}, braid.device = "npu:0", braid.cluster = 0 : i64}} : (!t) -> !t
  %1 = braid.pool %0 {{{POOL}, braid.device = "cpu:0", braid.cluster = 1 : i64}} : (!t) -> !t
  func.return %0, %1 : !t, !t
}}
"""


@dataclass(frozen=True)
class Asking:
    """A backend that asks for these passes."""

    preparation: Preparation

    def prepare(self, job: Job) -> Preparation:
        return self.preparation


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets backends, by their names, ask for other passes than they do."""

    def ask(**preparations: Preparation) -> None:
        found = {name: Asking(asked) for name, asked in preparations.items()}
        monkeypatch.setattr(prepare_backends, "backend_of", lambda device: found[device.backend])

    return ask


def run(pipeline: str) -> ModuleOp:
    context = make_context()
    module = parse_mlir(context, SPLIT_OVER_TWO, "split.mlir").module
    run_pipeline(context, module, pipeline)
    return module


def padded(module: ModuleOp) -> dict[str | None, bool]:
    """Whether the window on each device still has its padding."""
    pools = [op for op in module.walk() if isinstance(op, PoolOp)]
    return {device_name(op): op.windows.is_padded for op in pools}


def test_each_backend_prepares_its_own_part(asking: Callable[..., None]) -> None:
    asking(npu=Preparation(("expand-padding",)), cpu=Preparation())
    module = run("prepare-backends{target=npu-small}")
    assert padded(module) == {"npu:0": False, "cpu:0": True}
    asking(npu=Preparation(), cpu=Preparation(("expand-padding",)))
    module = run("prepare-backends{target=npu-small}")
    assert padded(module) == {"npu:0": True, "cpu:0": False}


def test_backends_that_ask_for_the_same_get_it_at_once(asking: Callable[..., None]) -> None:
    asking(npu=Preparation(("expand-padding",)), cpu=Preparation(("expand-padding",)))
    (once,) = prepare_backends.PrepareBackendsPass().passes(load_target("npu-small"))
    assert set(getattr(once, "devices")) == {"npu:0", "cpu:0"}  # noqa: B009
    assert padded(run("prepare-backends{target=npu-small}")) == {"npu:0": False, "cpu:0": False}


def test_on_one_device_nothing_is_told_apart() -> None:
    passes = prepare_backends.PrepareBackendsPass().passes(load_target())
    assert [getattr(pass_, "devices", ()) for pass_ in passes] == [()] * len(passes)


def test_passes_before_kernels_run_behind_all_decisions(asking: Callable[..., None]) -> None:
    asking(cpu=Preparation(before_kernels=("cse", "expand-padding")))
    names = [pass_.name for pass_ in graph_passes(load_target())]
    at = names.index("outline-kernels")
    own = ["cse", "expand-padding"]
    assert names[at - 5 : at] == ["select-storage", *own, "hoist-slices", "select-schedules"]
    asking(npu=Preparation(before_kernels=("expand-padding",)), cpu=Preparation())
    module = run("apply-clusters,prepare-backends{target=npu-small before=kernels}")
    functions = [op.parent_op() for op in module.walk() if isinstance(op, PoolOp)]
    pools = [op for op in module.walk() if isinstance(op, PoolOp)]
    expanded = {
        device_name(function): pool.windows.is_padded
        for function, pool in zip(functions, pools, strict=True)
        if function is not None
    }
    assert expanded == {"npu:0": False, "cpu:0": True}


def test_ops_are_split_for_their_own_device() -> None:
    module = run('select-splits{target=npu-small memory=100KiB devices="npu:0"}')
    assert {device_name(op): SPLIT in op.attributes for op in module.walk() if op.operands} == {
        "npu:0": True,
        "cpu:0": False,
        None: False,
    }


def test_streams_of_other_chips_stay() -> None:
    once = run('attach-streams{target=npu-small devices="npu:0"}')
    twice = run(
        'attach-streams{target=npu-small devices="npu:0"},'
        'attach-streams{target=npu-small devices="cpu:0"},'
        'attach-streams{target=npu-small devices="npu:0"}'
    )
    streams = [next(iter(module.ops)).attributes[STREAMS] for module in (once, twice)]
    assert streams[0] == streams[1] and '"npu:0"' in str(streams[0])


def test_families_of_a_chip_are_for_the_cpu_of_its_host() -> None:
    target = resolve_target("npu-small", {"cpu": "haswell"})
    families = kernel_families(target.default_device)
    assert families == kernel_families(target.host_device)
    machines = {family.machine.name for family in families if hasattr(family, "machine")}
    assert machines == {"haswell"}
