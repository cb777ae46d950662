"""Random models compiled with unusual options agree with the interpreter."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from onnx import ModelProto, printer

import braid
from benchmarks.generators.random_models import Draft, drafts
from braid.interpreted import interpret
from braid.passes.pipelines import DEFAULT
from braid.support.errors import BraidError, InfeasibleError
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
    "searched": {"kernels": "best", "untuned": "probe", "untuned_seconds": 1},
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
    "pinned": {"target": "host-2", "pin": "cpu:1"},
    "pinned, latency": {"target": "host-2", "pin": "cpu:0", "partition": "latency"},
    "buckets": {"shape_buckets": [0, 1]},
    "bounds": {"shape_bounds": 2},
    "stream": {"threads": 2},
    "stream of two CPUs": {"target": "host-2", "partition": "throughput"},
    "bf16": {"precision": "bf16"},
    "counted": {"profile": True},
    "kept": {"cache": True},
}
"""Options other than the defaults.

A budget that is a float is a part of the usual arena, a pin the device of every second kind of op,
buckets and bounds are how much larger than the first input's first dim sizes may be.
"""

REQUESTS = 3
"""Of a stream."""

NEVER_MORE = ("tensor threshold", "peak threshold", "jump threshold", "budget")
"""Settings that promise less memory."""


def with_open_size(model: ModelProto, options: dict[str, Any]) -> ModelProto:
    """Return the model with a dynamic first dim, and sizes for it in `options`."""
    opened = ModelProto()
    opened.CopyFrom(model)
    for value in opened.graph.input:
        dims = value.type.tensor_type.shape.dim
        if not dims or not dims[0].dim_value:
            continue
        size = dims[0].dim_value
        dims[0].dim_param = "n"
        for output in opened.graph.output:
            output.type.tensor_type.ClearField("shape")
        if "shape_buckets" in options:
            options["shape_buckets"] = {"n": [size + more for more in options["shape_buckets"]]}
        else:
            options["shape_bounds"] = {"n": size + options["shape_bounds"]}
        return opened
    options.pop("shape_buckets", None)
    options.pop("shape_bounds", None)
    return model


def compiled_so(model: ModelProto, name: str, options: dict[str, Any]) -> braid.Model | None:
    """Return the model compiled with these options, None if a diagnostic rejects them."""
    source = model
    if "shape_buckets" in options or "shape_bounds" in options:
        source = with_open_size(model, options)
    device = options.get("pin")
    pins = [f"{node.output[0]}={device}" for node in model.graph.node[::2]] if device else []
    while True:
        if device:
            options["pin"] = pins
        try:
            return braid.compile(source, **options)
        except InfeasibleError:
            return None
        except BraidError as error:
            folded = [pin for pin in pins if f"'{pin}'" in error.message]
            pins = [pin for pin in pins if pin not in folded]
            is_refused = source is not model or "no instruction" in error.message
            if not folded and not is_refused:
                raise
            if not folded:
                event(f"{name} refused")  # For this graph, or this CPU, other sizes are invalid.
                return None


def holds(compiled: braid.Model, inputs: Mapping[str, Any]) -> bool:
    """Return whether all inputs are within the bounds of a compiled model."""
    return all(
        size <= most
        for spec in compiled.inputs
        for size, most in zip(inputs[spec.name].shape, spec.bound, strict=True)
    )


def each(results: Any) -> Sequence[Any]:
    """Return the results of a run as a list, also if it is one array."""
    return results if isinstance(results, tuple) else (results,)


def as_bf16(arrays: Iterable[Any]) -> list[Any]:
    return [a.astype(ml_dtypes.bfloat16) if a.dtype == np.float32 else a for a in arrays]


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
        options = {"jobs": 1, "cache": False, **SETTINGS[name]}
        if isinstance(part := options.get("memory_budget"), float):
            options["memory_budget"] = max(64, int(part * usual.arena_bytes))
        compiled = compiled_so(model, name, options)
        if compiled is None:
            continue
        event(name)
        if name == "bounds" and not holds(compiled, inputs):
            event("bound without the size")  # For smaller powers of two, others are possible.
            continue
        requests = [inputs] * (REQUESTS if name.startswith("stream") else 1)
        for found in [compiled.run_named(inputs).values(), *map(each, compiled.stream(requests))]:
            if name == "bf16":
                assert_close(as_bf16(found), as_bf16(interpreted), name)
            else:
                assert_close(list(found), interpreted, name)
        if name in NEVER_MORE:
            assert compiled.arena_bytes <= usual.arena_bytes, name
