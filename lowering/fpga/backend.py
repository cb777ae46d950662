"""The backend of FPGAs: functions of integers as designs, and as circuits that are simulated.

A function has no separate kernels: linking undoes its fusion into one graph, and chooses its stages
anew. Its weights are in the design, or in the memory beside the part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.lowering.fpga.circuit import Circuit
from braid.lowering.fpga.part import part_name
from braid.lowering.fpga.report import report, taken_of
from braid.lowering.fpga.schedule.select import budget_of, memory_of
from braid.lowering.fpga.timeline import timeline
from braid.lowering.fpga.unsupported_ops import unsupported_reason
from braid.support.errors import BraidError
from braid.support.option_names import by_door, option_text
from braid.support.tar import tar_of
from braid.targets.backend import Backend, Code, Job, KernelNeeds, Preparation
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.target import Device

RTL = "rtl"
"""Kind of code: a shared object with the verilated circuit of a function; the plugin for it."""
PROJECT = "hls-project"
"""Stage: a tar archive with a folder for each circuit, a project for Vitis HLS."""


@dataclass(frozen=True)
class FpgaBackend(Backend):
    """Makes a circuit of each function; see `Backend`."""

    name: str
    stages: tuple[str, ...] = (
        "hls",
        "hls-cpp",
        PROJECT,
        "verilog",
        "testbench",
        "report",
        "synthesis",
        "timeline",
    )

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Return no families: groups are row-major, and stages do not correspond to them."""
        return installed

    def prepare(self, job: Job) -> Preparation:
        """Return no passes: windows take paddings, and stages the ops after them."""
        return Preparation()

    @property
    def analytic_scheduling(self) -> str:
        """It is no search: the resources of a schedule are counted, and its bound is proven."""
        return (
            "'select-hls-schedule' chooses those of circuits when a model is compiled, by counted "
            "resources and with a proven bound"
        )

    def unsupported_reason(self, op: Operation, known: ParameterExpressions) -> str | None:
        """Return why designs do not have `op`; None where they do."""
        return unsupported_reason(op, known)

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> "FpgaKernels":
        """Return kernels without code: `link` makes the design."""
        return FpgaKernels(tuple(kernel.sym_name.data for kernel in kernels), job)


@dataclass(frozen=True)
class FpgaKernels:
    """Functions of which circuits will be made; see `EmittedKernels`."""

    kernels: tuple[str, ...]
    job: Job

    @property
    def needs(self) -> list[KernelNeeds]:
        """Kernels need nothing: no program calls them."""
        return [KernelNeeds(kernel) for kernel in self.kernels]

    def link(self, functions: Sequence[FuncOp]) -> list[Code]:
        """Return the circuit of each function, and how long it takes at the clock of the part.

        Raises UnsupportedError naming the unsupported op or type, and BraidError for a whole model,
        or if the part is too small.
        """
        device = self.job.device
        if any(function.sym_visibility is None for function in functions):
            raise BraidError(
                f"a whole model cannot run on device '{device.name}', which no program starts",
                hint="launch it from a model of another device, as 'assign-devices' does",
            )
        if device.plugin != RTL:
            raise BraidError(
                f"there is no device plugin '{device.plugin}' for device '{device.name}' yet",
                hint=f"{option_text('target', 'fpga-sim')} simulates circuits"
                + by_door("", ", and 'braid compile --emit=verilog' shows them"),
            )
        return [
            Code(
                RTL,
                (circuit.library(),),
                circuit.cycles / self._clock,
                function=circuit.function.sym_name.data,
                interval=circuit.interval / self._clock,
                resources=taken_of(circuit, device.machine),
            )
            for circuit in self._circuits(functions)
        ]

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """Return the designs in dialect `braid_hls`, their C++, their SystemVerilog, or
        testbenches.

        At `hls-project` it is one archive of all of them, for the part of the machine. At `report`
        it is their resources and frames per second; at `synthesis` the counts of Yosys and the
        longest path; at `timeline` the data that a page draws.
        """
        circuits = self._circuits(functions)
        machine = self.job.device.machine
        if stage == "report":
            return [report(circuit, machine) for circuit in circuits]
        if stage == "timeline":
            return [timeline(circuit, machine) for circuit in circuits]
        if stage == PROJECT:
            return [_archive(circuits, part_name(machine))]
        return [circuit.at(stage) for circuit in circuits]

    @cached_property
    def _clock(self) -> float:
        return self.job.device.machine.fact("clock")

    def _circuits(self, functions: Sequence[FuncOp]) -> list[Circuit]:
        """Return the circuits, which divide the part by their needs."""
        machine = self.job.device.machine
        return Circuit.of_all(
            functions, self.job.weights(), budget_of(machine), self._clock, memory_of(machine)
        )


def _archive(circuits: Sequence[Circuit], part: str) -> bytes:
    """Return the archive of the projects of circuits, in folders of their names."""
    return tar_of(
        {
            f"{circuit.name}/{name}": text.encode()
            for circuit in circuits
            for name, text in circuit.project(part).items()
        }
    )
