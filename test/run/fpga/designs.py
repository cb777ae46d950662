"""Common parts of tests of designs: a function becomes a design, simulated and compared with the
interpreter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

from braid.analysis.interpreter.interpret import interpret
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.lowering.fpga.convert.design_of import Converted, design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.design.streams import (
    depths_of,
    give_depths,
    network_of,
    weights_of,
    workers_of,
)
from braid.lowering.fpga.rtl.design_module import design_modules
from braid.lowering.fpga.rtl.ports import Array
from braid.lowering.fpga.rtl.simulate import Stalls, VerilatedDesign
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.lowering.fpga.rtl.verilate import lint
from braid.lowering.fpga.schedule.choices import Memory, folds_of
from braid.lowering.fpga.schedule.select import (
    WITHOUT_LIMIT,
    Schedule,
    apply_schedule,
    select_schedule,
)
from braid.solvers.streams import earliest, fewest_depths
from braid.universe import make_context

PROFILES = (Stalls(), Stalls(50, 100), Stalls(100, 50), Stalls(40, 40))
IMAGES = 2


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


@dataclass
class Checked:
    """A design in which cycles and results were compared."""

    converted: Converted
    schedule: Schedule
    verilated: VerilatedDesign
    cycles: int


def scheduled(
    function: FuncOp, parameters: Mapping[str, Array], dsp: int, memory: Memory | None = None
) -> tuple[Converted, Schedule]:
    """Return the fastest design with so many DSP slices.

    With a memory, it reads the factors of all stages that need new ones in each iteration.
    """
    converted = design_of(function, parameters)
    schedule = select_schedule(converted.design, (dsp, *[WITHOUT_LIMIT] * 4))
    assert schedule.lower_bound == schedule.cycles >= schedule.work_bound
    assert schedule.uses[0] <= dsp
    if memory is not None:
        for stage, folds in zip(workers_of(converted.design), schedule.folds, strict=True):
            if any(one.reads and one.folds == folds for one in folds_of(stage, memory)):
                stage.attributes["memory_latency"] = IntegerAttr(memory.latency, i64)
    apply_schedule(converted.design)
    return converted, schedule


def check(
    module: ModuleOp,
    dsp: int,
    parameters: Mapping[str, Array] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    memory: Memory | None = None,
) -> Checked:
    """Results are the interpreter's whatever stalls, and cycles those that were predicted."""
    function = function_named(module, "main")
    converted, schedule = scheduled(function, parameters or {}, dsp, memory)
    design = converted.design
    assert memory is None or weights_of(design)
    design.verify()
    found = fewest_depths(network_of(design))
    assert found.fewest and found.goes_on
    give_depths(design, found.depths)
    cycles = predicted(converted, IMAGES)
    name = design.sym_name.data
    assert lint(name, system_verilog(design_modules(design))) == ""
    verilated = VerilatedDesign(design)
    for profile in PROFILES:
        for seed in seeds:
            given, expected = images(module, converted, parameters, seed)
            stalls = Stalls(profile.valid, profile.ready, seed, min(profile.valid, profile.ready))
            done = verilated.run(given, [array.shape for array in expected], stalls)
            for output, array in zip(done.outputs, expected, strict=True):
                np.testing.assert_array_equal(output, array)
            if profile == Stalls():
                assert done.cycles == cycles
            else:
                assert done.cycles >= cycles
    return Checked(converted, schedule, verilated, cycles)


def predicted(converted: Converted, images: int) -> int:
    """Cycles of so many images with the depths that the design has."""
    network = network_of(converted.design)
    times = earliest(network, images, depths_of(converted.design))
    assert times is not None
    return times.cycles(network)


def images(
    module: ModuleOp,
    converted: Converted,
    parameters: Mapping[str, Array] | None,
    seed: int,
) -> tuple[list[Array], list[Array]]:
    """Return the inputs and the expected outputs of several images."""
    rng = np.random.default_rng(seed)
    ports = converted.ports
    values: dict[SSAValue, list[Array]] = {value: [] for value in (*ports.inputs, *ports.outputs)}

    def observe(op: Operation, operands: Sequence[object], results: Sequence[object]) -> None:
        for result, value in zip(op.results, results, strict=True):
            if result in values:
                values[result].append(np.asarray(value))

    arguments = function_named(module, "main").body.block.args
    for _ in range(IMAGES):
        inputs = [random_like(value, rng) for value in arguments]
        for argument, array in zip(arguments, inputs, strict=True):
            if argument in values:
                values[argument].append(array)
        interpret(module, inputs, parameters=parameters, observer=observe)
    return (
        [np.concatenate(values[value]) for value in ports.inputs],
        [np.concatenate(values[value]) for value in ports.outputs],
    )


def random_like(value: SSAValue, rng: np.random.Generator) -> Array:
    dtype = to_numpy(element_type_of(value))
    if np.issubdtype(dtype, np.floating):
        return rng.normal(0, 2, shape_of(value)).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape_of(value), dtype, endpoint=True)
