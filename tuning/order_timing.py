"""Measure how long one run of a module takes on this machine."""

import time
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.driver.compile_source import compile_source
from braid.driver.options import CompileOptions
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.tuning.synthetic_inputs import synthetic_inputs, synthetic_lengths, synthetic_parameters

AFTER_ORDER = "select-storage,outline-kernels"
"""The passes that the default pipeline runs once the order is fixed."""

Run = Callable[[], float]
"""Runs once; returns the seconds that it took."""


def prepare_on_host(module: ModuleOp) -> Run:
    """Compile a module whose order is fixed and whose ops are groups already, for this machine.

    Inputs and weights are 0.5, whose products are normal numbers, or 0, a valid index; loops run as
    often as is expected. Raises BraidError for what cannot be compiled.
    """
    parameters, lengths = synthetic_parameters(module), synthetic_lengths(module)
    with collect_remarks():  # the measurements of a model that keeps no new schedule
        passes = parse_pipeline(AFTER_ORDER)
        model = compile_source(module, CompileOptions(passes=passes, parameters=parameters))
    inputs = synthetic_inputs(model.inputs, lengths)
    outputs = model.run(inputs)

    def run() -> float:
        start = time.perf_counter()
        model.run(inputs, outputs)
        return time.perf_counter() - start

    return run
