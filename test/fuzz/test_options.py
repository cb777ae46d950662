"""Random models by unusual options: what is compiled is what the interpreter computes."""

import os
from typing import Any

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from onnx import printer

import braid
from benchmarks.generators.random_models import Draft, drafts
from braid.interpreted import interpret
from braid.passes.pipelines import DEFAULT
from braid.support.errors import InfeasibleError
from test.fuzz.test_models import assert_close, run_onnxruntime

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "1"))


def _with_passes(before: str, *passes: str) -> str:
    place = DEFAULT.index(before)
    return ",".join((*DEFAULT[:place], *passes, *DEFAULT[place:]))


SETTINGS: dict[str, dict[str, Any]] = {
    "threads": {"threads": 2},
    "inter-op threads": {"inter_op_threads": 2},
    "strict": {"numerics": "strict"},
    "library": {"kernels": "library"},
    "searched": {"kernels": "best", "on_miss": "probe", "on_miss_seconds": 1},
    "no integers": {"integers": False},
    "AVX2": {"cpu": "haswell"},
    "SSE2": {"cpu": "x86-64"},
    "emulated GPU": {"target": "gpu-emulated"},
    "two CPUs, latency": {"target": "host-2", "partition": "latency"},
    "two CPUs, throughput": {"target": "host-2", "partition": "throughput"},
    "chip": {"target": "npu-small", "emulate": True},
    "tensor threshold": {"recompute": "tensor-threshold=256"},
    "peak threshold": {"recompute": "peak-threshold=1KiB"},
    "jump threshold": {"recompute": "jump-threshold=64 peak-threshold=512 mode=all"},
    "budget": {"memory_budget": 0.7},
    "splits": {
        "passes": _with_passes("select-fusion", "select-splits{memory=512}", "apply-splits")
    },
    "no tiles": {
        "passes": ",".join(
            "select-fusion{tiles=false}" if p == "select-fusion" else p for p in DEFAULT
        )
    },
    "no layouts": {
        "passes": ",".join(p for p in DEFAULT if p not in ("select-layouts", "apply-layouts"))
    },
    "counted": {"profile": True},
    "kept": {"cache": True},
}
"""Options other than the defaults; a budget that is a float is a part of the usual arena."""

NEVER_MORE = ("tensor threshold", "peak threshold", "jump threshold", "budget")
"""Settings that promise less memory."""


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drafts(), st.lists(st.sampled_from(sorted(SETTINGS)), min_size=3, max_size=3, unique=True))
def test_options_do_not_change_results(draft: Draft, names: list[str]) -> None:
    if not draft.nodes:
        return
    model = draft.model()
    note(printer.to_text(model))
    inputs = {
        value.name: draft.inputs[value.name] for value in draft.values if value.name in draft.inputs
    }
    interpreted = list(interpret(model).run_named(inputs).values())
    usual = braid.compile(model, jobs=1)
    assert_close(list(usual.run_named(inputs).values()), interpreted, "by default")
    reference = run_onnxruntime(model, inputs) if draft.is_portable else None
    if reference is not None:
        assert_close(interpreted, reference, "interpreted against ONNX Runtime")
    for name in names:
        event(name)
        options = {"jobs": 1, "cache": False, **SETTINGS[name]}
        if isinstance(part := options.get("memory_budget"), float):
            options["memory_budget"] = max(64, int(part * usual.arena_bytes))
        try:
            compiled = braid.compile(model, **options)
        except InfeasibleError:
            continue
        assert_close(list(compiled.run_named(inputs).values()), interpreted, name)
        if name in NEVER_MORE:
            assert compiled.arena_bytes <= usual.arena_bytes, name
