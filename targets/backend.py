"""The protocol of a backend, which compiles decided functions to code of one kind.

A backend compiles for a kind of device, a device is an instance of a machine that runs the code,
and a target file lists the devices. The compiler walks over the functions of a model and asks the
backend of each one's device; it knows none by name. An installed package registers a backend by an
entry point:

    [project.entry-points."braid.backends"]
    npu = "braid_chip.backend:ChipBackend"

The class is called with that name. The compiler calls its methods in this order:

1. `families` returns the kernel families among which fusion, layout selection, storage and `emit`
   choose. A backend without any gets groups in row-major layouts, whose times are estimated by the
   roofline of its description.
2. `prepare` returns passes. Some run before groups and layouts are decided: they turn paddings into
   separate ops if kernels have no edge cases, or split tensors that do not fit a memory. Others run
   on the decided order, just before kernels are outlined.
3. `emit` returns kernels that are not compiled yet, so that memory planning can ask for the needs
   of each: scratch memory, operands that its results may overwrite, iterations, barriers.
4. `EmittedKernels.link` returns the code of planned functions, as bytes with a kind. Code of the
   kind `OBJECT` defines each kernel's symbol and is linked into the host program, which calls it
   with the addresses of its buffers. Code of all other kinds (PTX, a bit stream, instructions) is
   carried by the artifact for the plugin of the device.

A backend for GPUs emits PTX for each kernel in `emit`, needs no scratch memory for what is shared
memory on the device, and links functions to one module with a launch for each kernel. A backend for
FPGAs has no kernels: its `emit` needs nothing, and `link` turns a function, whose decided order and
buffers it finds on the ops, into one design. It decides which ops it does not support
(`unsupported_reason`).

All other methods have defaults. A backend whose kernels are not timed on the host's processor
measures or predicts their times (`meter`), and one whose kernels are not those of fusion's groups
returns its own (`groups`). The backend of another package need not inherit from `Backend`: see
`backend_answers.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.support.sizes.expression import Extent, Size
from braid.targets.kernels.kernel_family import InPlace, Kernel, KernelFamily
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device, Target

Weights = Mapping[str, npt.NDArray[Any]]
"""The arrays of parameters, by their keys."""

OBJECT = "object"
"""The kind of code that is relocatable objects for the machine of the host."""


def _no_weights() -> Weights:
    return {}


@dataclass(frozen=True)
class Job:
    """The device of a target to compile for, and the number of processes that may compile.

    `weights` returns the parameters of the model by their keys, including those that `@prepare`
    computes, for code that embeds them. Computing them takes time: call it once, and only where
    they are needed.
    """

    target: Target
    device: Device
    jobs: int = 1
    weights: Callable[[], Weights] = _no_weights


class KernelMeter(Protocol):
    """Measures or predicts how long kernels of one device take, for `braid tune`.

    One thread at a time calls it. A kernel that crashes or hangs must not affect the answers for
    others.
    """

    @property
    def quantity(self) -> str:
        """Return the quantity that the seconds are, for people and records: `measured time`,
        `simulated time`, ….

        It stands in records.
        """
        ...

    @property
    def is_exact(self) -> bool:
        """Return whether a kernel always takes the same time, as in a simulator.

        It then runs once.
        """
        ...

    def compiled(self, kernels: Sequence[Kernel], group: FusedOp) -> Sequence[Any | None]:
        """Return `kernels` of `group`, compiled, in their order; None for what does not compile."""
        ...

    def seconds(self, made: Any) -> float | None:
        """Return the seconds of one run; None where it crashes or hangs, or cannot run at all."""
        ...

    def results(
        self, made: Any, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the results of one run; None where `seconds` returns None.

        Arrays have the layouts of the tensors; `results` are what the buffers of the results hold
        before the kernel runs.
        """
        ...


@dataclass(frozen=True, eq=False)
class BackendGroup:
    """A group that a backend forms itself and compiles to one kernel.

    `group` is a copy, in a separate block, of ops in `block` of the model; records identify it by
    `machine`, on which it runs.
    """

    group: FusedOp
    block: Block
    machine: Machine


@dataclass(frozen=True)
class Preparation:
    """Passes and pipelines that a backend needs, with options as in a textual pipeline.

    `before_folding` run on the graph as soon as devices are assigned. `before_fusion` run after the
    simplifications that hold for every backend; parameter expressions are hoisted again after them.
    `before_kernels` run when groups, layouts, order and storage are decided, and clusters are
    functions.

    If a model runs on several devices, a pass with an option `devices` gets the names of those that
    need it, and changes only what runs on these (`runs_on`). A pass without the option runs on the
    whole graph, so that its result must be valid for every backend, as simplifications are.
    """

    before_fusion: tuple[str, ...] = ()
    before_kernels: tuple[str, ...] = ()
    before_folding: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelNeeds:
    """The facts on a kernel for memory planning and the host program; `Kernel` has the meanings.

    `status` is the symbol of a function `int32_t status(const braid_env *)` of the code, which the
    program calls when it ends. It returns 0, or calls `fail` of the environment and returns another
    number if a kernel has failed.
    """

    symbol: str
    grid: Extent = 1
    scratch_bytes: Extent = 0
    in_place: tuple[InPlace, ...] = ()
    overlap: int | None = None
    barriers: tuple[int, ...] = ()
    status: str = ""
    libraries: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()


def needs_of(kernel: Kernel) -> KernelNeeds:
    """Return the needs that a kernel in upstream dialects declares."""
    return KernelNeeds(
        kernel.symbol,
        kernel.grid,
        kernel.scratch_bytes,
        kernel.in_place,
        kernel.overlap,
        kernel.barriers,
        libraries=kernel.libraries,
        features=kernel.features,
        sizes=kernel.sizes,
    )


@dataclass(frozen=True)
class Code:
    """Compiled code of one kind; `parts` are in the order in which they are linked.

    `seconds` is the time of one execution if it is known without a device, as by simulation, else
    None; `executions` is how often it is expected to run in one run of the model. `function` is the
    name of its function if it has a single one. `libraries` are the names of shared libraries that
    it calls. `interval` is the time in seconds from one input of a stream to the next. `resources`
    maps names in plain words to what the code uses of a resource and what the device has. Both may
    be unknown.
    """

    kind: str
    parts: tuple[bytes, ...]
    seconds: float | None = None
    executions: float = 1.0
    function: str = ""
    libraries: tuple[str, ...] = ()
    interval: float | None = None
    resources: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )


class EmittedKernels(Protocol):
    """The kernels of some functions on one device, emitted and not compiled yet."""

    @property
    def needs(self) -> Sequence[KernelNeeds]:
        """The needs of the kernels, in their order."""
        ...

    def link(self, functions: Sequence[FuncOp]) -> Sequence[Code]:
        """Compile the kernels, and the functions that call them, whose memory is planned.

        Raises BraidError naming the first kernel that cannot be compiled.
        """
        ...

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """Return the text of kernels, or of `functions` that call them, at one of `stages`."""
        ...


class Backend(ABC):
    """Compiles for one kind of device; there is one instance for each registered name.

    Targets refer to it by `name`; `stages` are the stages of its lowering that
    `braid compile --emit` can show.
    """

    name: str
    stages: tuple[str, ...]

    supports_dynamic_shapes: bool = False
    """True where its kernels can be made for sizes that are known only when the model runs."""

    schedule_pass: str = ""
    """The name of the pass that selects the schedules of `groups`; empty without any.

    It is one of the passes of `prepare`, writes `braid.schedule`, and emits a remark with the
    number of kernels (`groups`) and of those with a record (`known`). It runs before
    `select-schedules`.
    """

    @abstractmethod
    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Return the kernel families for the machine of `device`, in order of preference.

        The order decides among equally fast families. They include families of other packages,
        `installed`, which usually come first.
        """

    @abstractmethod
    def prepare(self, job: Job) -> Preparation:
        """Return the passes that functions for this device need."""

    @abstractmethod
    def emit(self, kernels: Sequence[FuncOp], job: Job) -> EmittedKernels:
        """Emit the kernels that `outline-kernels` made functions of, for the device of `job`.

        Raises BraidError where a family fails, and UnsupportedError for an op that the backend
        cannot emit.
        """

    def unsupported_reason(self, op: Operation, known: ParameterExpressions) -> str | None:
        """Return why `op` is not supported, such as "'braid.softmax' on an FPGA"; None where it is.

        The answer takes precedence over the lists of ops of targets. `known` tells which operands
        depend on weights alone, and caches that for other ops.
        """
        return None

    def meter(self, job: Job) -> AbstractContextManager[KernelMeter] | None:
        """Return a context with the meter by which `braid tune` times kernels of the job's device.

        None if the device's schedules are not searched; kernels of the host are then timed on the
        processor of this machine. Raises BraidError where they can be timed neither way here.
        """
        return None

    def groups(self, function: FuncOp, job: Job) -> Iterable[BackendGroup]:
        """Return the groups that the backend forms itself, as the pass `schedule_pass` sees them.

        An example are streams of instructions, each of all that a chip runs at once. If
        `schedule_pass` is empty, kernels are those of the groups that fusion forms.
        """
        return ()

    def group_family(self, job: Job) -> KernelFamily:
        """Return the family that matches `groups`, and nothing else."""
        raise NotImplementedError(
            f"backend '{self.name}' has a 'schedule_pass', and no 'group_family'"
        )

    @property
    def analytic_scheduling(self) -> str | None:
        """Return how schedules are chosen without measuring, in words; None if `braid tune`
        searches them.
        """
        return None

    def local_machine(self, device: Device) -> str | None:
        """Return the `cpu` of the machine that runs code for `device` here; None if unknown.

        Code may also run on other machines than the target's; times measured there are not valid
        for the target.
        """
        return None


Grouping = Measuring = Unmeasured = Backend
"""Earlier names of a backend with `groups`, `meter` or `analytic_scheduling`."""

StandingGroup = BackendGroup
"""The earlier name of `BackendGroup`."""
