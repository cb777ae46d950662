"""What is asked of a backend: what turns decided functions into code of one kind.

A backend makes code, a device is an instance of a machine that runs it, and a target file says
which devices there are. The compiler walks over the functions of a model and asks the backend of
each one's device; it knows none by name. An installed package has a backend by an entry point:

    [project.entry-points."braid.backends"]
    npu = "braid_chip.backend:ChipBackend"

The class is called with the name under which it is found. In the order in which it is asked:

1. `families`: what makes kernels, which fusion, layouts, storage and `emit` choose among. A backend
   without any gets groups in row-major layouts, with times by the roofline of its description.
2. `prepare`: passes that the ops of its functions need before groups and layouts are decided, such
   as paddings as ops of their own where kernels have no edge cases, or splits of what does not fit
   a memory; and passes that run on the decided order, when kernels are about to be outlined.
3. `emit`: the code of kernels before anything is compiled, so that memory planning can ask what
   each one needs: scratch, which operands its results may overwrite, iterations, barriers.
4. `EmittedKernels.link`: the code of planned functions, as bytes with a kind. Code of the kind
   `OBJECT` defines each kernel's symbol and is linked into the host program, which calls it with
   the addresses of its buffers. All other kinds (PTX, a bit stream, instructions) are bytes that
   the artifact carries for the plugin of the device.

A backend for GPUs emits PTX for each kernel in `emit`, asks for shared memory as nothing of the
arena, and links functions to one module with a launch a kernel. One for FPGAs has no kernels: its
`emit` needs nothing, and `link` turns a function, whose decided order and buffers it finds on the
ops, into one design. What it does not run it says itself (`refusal`).

All else has defaults: a backend whose kernels are not timed as those of the host's processor says
how fast they are (`meter`), and which `groups` they are of, if not of those that fusion makes. The
backend of another package need not inherit from `Backend`: see `backend_answers.py`.
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
"""Arrays by the keys of parameters."""

OBJECT = "object"
"""Kind of code: relocatable objects for the machine of the host."""


def _no_weights() -> Weights:
    return {}


@dataclass(frozen=True)
class Job:
    """What code is made for: a device of a target, by so many processes.

    `weights` gives the parameters of the model by their keys, those that `@prepare` makes too, for
    code that has them in it. It computes these: ask once, and only where they are needed.
    """

    target: Target
    device: Device
    jobs: int = 1
    weights: Callable[[], Weights] = _no_weights


class KernelMeter(Protocol):
    """How long kernels of one device take, for `braid tune`; it is asked by one thread at a time.

    A kernel that crashes or hangs must cost no more than its own answer.
    """

    @property
    def what(self) -> str:
        """What its seconds are, for people: `measured time`, `simulated time`, ….

        Records say it.
        """
        ...

    @property
    def is_exact(self) -> bool:
        """Whether a kernel always takes the same, as by a simulator: it is asked once then."""
        ...

    def made(self, kernels: Sequence[Kernel], group: FusedOp) -> Sequence[Any | None]:
        """Compile kernels of `group`, in their order; None for what cannot be compiled."""
        ...

    def seconds(self, made: Any) -> float | None:
        """Return what one run takes; None where it crashes or hangs, or cannot run at all."""
        ...

    def results(
        self, made: Any, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the results of one run; None as `seconds`.

        Arrays are as tensors are stored; `results` are what is there before the kernel runs.
        """
        ...


@dataclass(frozen=True, eq=False)
class StandingGroup:
    """What a backend makes one kernel of: `group`, a copy in a block of its own.

    It computes what stands in `block` of the model, on `machine`, by which records know it.
    """

    group: FusedOp
    block: Block
    machine: Machine


@dataclass(frozen=True)
class Preparation:
    """Names of passes and pipelines, with options as in a textual pipeline.

    `before_folding` run on the graph as soon as devices are assigned. `before_fusion` run when all
    that holds for every backend was simplified, and again hoists what depends on weights alone.
    `before_kernels` run when groups, layouts, order and storage are decided, and clusters are
    functions.

    Of a model on several devices, a pass with an option `devices` gets the names of those that ask
    for it, and changes what runs on these alone (`runs_on`). One without it runs on the whole
    graph: what it does must hold for every backend, as what simplifies does.
    """

    before_fusion: tuple[str, ...] = ()
    before_kernels: tuple[str, ...] = ()
    before_folding: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelNeeds:
    """What memory planning and the host program ask of a kernel; see `Kernel` for the meaning.

    `status` is the symbol of a function `int32_t status(const braid_env *)` of the code, which the
    program calls when it ends: not 0, and `fail` of the environment called, where a kernel failed.
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
    """Return what a kernel in upstream dialects declares."""
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

    `seconds` is how long it takes once, where that is known without a device, such as by
    simulating it, and None elsewhere; `executions` is how often a run of the model is expected to
    come by. `function` is the one of the functions that it is of, where it is of one. `libraries`
    are the names of shared libraries that it calls. `interval` is the time in seconds from one
    input of a stream to the next, and `resources` what it takes of the device and what there is,
    by names in plain words; both where they are known.
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
        """What each of the kernels needs, in their order."""
        ...

    def link(self, functions: Sequence[FuncOp]) -> Sequence[Code]:
        """Compile the kernels, and the functions that call them, whose memory is planned.

        Raises BraidError naming the first kernel that cannot be compiled.
        """
        ...

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """Return the kernels, or `functions` that call them, at one of the backend's `stages`."""
        ...


class Backend(ABC):
    """Makes code for one kind of device; made once for each name it has.

    `name` is that under which targets know it, and `stages` are the names of the stages of its
    lowering that `braid compile --emit` can show.
    """

    name: str
    stages: tuple[str, ...]

    takes_open_sizes: bool = False
    """Whether its kernels can be made for sizes that are known when the model runs."""

    selecting: str = ""
    """The name of the pass that chooses the schedules of `groups`, where there are any.

    It is one of those that `prepare` names, writes `braid.schedule`, and says in a remark how many
    kernels (`groups`) have a record (`known`). It runs before `select-schedules`.
    """

    @abstractmethod
    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Return the kernel families for the machine of `device`, in order of preference among
        equals.

        Those that other packages have `installed` are among them, usually first.
        """

    @abstractmethod
    def prepare(self, job: Job) -> Preparation:
        """Return the passes that functions for this device need."""

    @abstractmethod
    def emit(self, kernels: Sequence[FuncOp], job: Job) -> EmittedKernels:
        """Return the code of functions that `outline-kernels` made, for the device of `job`.

        Raises BraidError where a family fails, and UnsupportedError for an op that it has no code
        for.
        """

    def refusal(self, op: Operation, known: ParameterExpressions) -> str | None:
        """Return why `op` is not supported, such as "'braid.softmax' on an FPGA"; None where it is.

        That holds whatever lists of targets say. `known` says which operands are made of weights
        alone, and remembers it for other ops.
        """
        return None

    def meter(self, job: Job) -> AbstractContextManager[KernelMeter] | None:
        """Return what `braid tune` asks about kernels of the device of `job`, as long as the block
        runs.

        None where they are not searched, unless they are those of the host: these are timed on the
        processor of this machine. Raises BraidError where nothing can be said of them here.
        """
        return None

    def groups(self, function: FuncOp, job: Job) -> Iterable[StandingGroup]:
        """Return what kernels are of on the device of `job`, as the pass `selecting` sees it.

        Such as streams of instructions, each of all that a chip runs at once. Where `selecting` is
        empty, kernels are of the groups that fusion makes.
        """
        return ()

    def group_family(self, job: Job) -> KernelFamily:
        """Return the family that matches `groups`, and nothing else."""
        raise NotImplementedError(f"backend '{self.name}' has 'selecting' and no 'group_family'")

    @property
    def schedules_by(self) -> str | None:
        """What chooses schedules without measuring, and when, for people; None: `braid tune`."""
        return None

    def machine_here(self, device: Device) -> str | None:
        """Return the `cpu` of the machine of what is here for `device`; None where nothing is
        known.

        For code that may run on other machines than the target's, whose times are not those of it.
        """
        return None


Grouping = Measuring = Unmeasured = Backend
"""Names by which packages know a backend with `groups`, `meter` or `schedules_by`."""
