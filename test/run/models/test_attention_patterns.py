"""Attention as exporters write it: correct results, and no group slower than its parts."""

from math import inf
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import braid
from benchmarks.generators.attention_models import (
    AttentionPattern,
    attention_model,
    random_pattern,
)
from benchmarks.models.inputs import random_inputs
from benchmarks.models.peers import load_ort
from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.regions import FusedOp
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.passes.fusion.generic_groups import trial_group
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of
from braid.tools.comparison.layerwise import relative_error
from braid.universe import make_context

PACKED = [
    ("split", "relative", 16, 32),
    ("gather", "where", 8, 8),
    ("slice", "causal", 40, 40),
    ("squeezed", "mask", 24, 24),
]


def packed(form: str, bias: str, width: int, values: int) -> AttentionPattern:
    return AttentionPattern(
        batch=2,
        heads=3,
        groups=1,
        tokens=97,
        keys=97,
        width=width,
        values=values,
        form=form,
        bias=bias,
        scale="scores",
    )


@pytest.mark.parametrize(("form", "bias", "width", "values"), PACKED)
def test_packed_attention(tmp_path: Path, form: str, bias: str, width: int, values: int) -> None:
    """q, k and v are slices of one product, from narrow heads."""
    path = tmp_path / "attention.onnx"
    path.write_bytes(attention_model(packed(form, bias, width, values)).SerializeToString())
    inputs = random_inputs(path)
    (reference,) = load_ort(path, inputs).run()
    compiled = braid.compile(path)
    (actual,) = compiled.run([inputs[spec.name] for spec in compiled.inputs])
    assert relative_error(actual, reference) <= 1e-5


def decided(pattern: AttentionPattern) -> ModuleOp:
    """Return the module after the passes that choose groups, layouts and storage."""
    context = make_context()
    module = read_source(context, attention_model(pattern), target="host").module
    passes = passes_for(module)
    names = [pass_.name for pass_ in passes]
    run_pipeline(context, module, passes[: names.index("select-storage") + 1])
    return module


def computing(group: FusedOp) -> list[Operation]:
    inner = (op for op in group.body.block.ops if op is not group.terminator)
    return [op for op in inner if not isinstance(op, ConstantOp)]


@pytest.mark.parametrize(
    "pattern",
    [*(packed(*each) for each in PACKED), *map(random_pattern, range(500, 510))],
    ids=lambda pattern: pattern.name,
)
def test_generic_loops_take_no_group_that_its_ops_alone_would_beat(
    pattern: AttentionPattern,
) -> None:
    module = decided(pattern)
    costs = CostSource(target_of(module))
    for group in [op for op in module.walk() if isinstance(op, FusedOp)]:
        ops = computing(group)
        if len(ops) < 2 or is_only_storage(group):
            continue
        cost = costs.cost(group)
        if cost.family not in ("", "generic"):
            continue
        together = cost.seconds if cost.family else inf
        apart = sum(alone_seconds(op, group, costs) for op in ops if not is_view(op))
        assert together <= apart, [op.name for op in ops]


def alone_seconds(op: Operation, group: FusedOp, costs: CostSource) -> float:
    """Return the time of a family's best kernel for `op`: infinite if there is none."""
    with trial_group([op]) as alone:
        found = costs.of(group).kernels.options(alone)
    return min((each.seconds for each in found), default=inf)
