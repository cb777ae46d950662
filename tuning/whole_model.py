"""Comparing a model before and after its kernels were searched, and taking back what does not pay.

See `tuning/model_verdict.py` for the rule.
"""

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.profile.loop_lengths import Lengths
from braid.dialects.braid.settings import write_settings
from braid.driver.compile_source import missing_here
from braid.driver.lower_source import Lowering
from braid.driver.lowered_model import package_of
from braid.driver.options import CompileOptions
from braid.driver.read_source import chain_parameters
from braid.driver.sources.source_model import SourceModel
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError
from braid.support.records.record_store import Fields, Record, RecordStore, default_store, reading
from braid.support.settings import Kernels
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.costs.cost_records import COST, withdraw_records, withdrawn
from braid.targets.costs.schedule_records import (
    MEASURED,
    SCHEDULE_KIND,
    TunedKernel,
    append_tuned,
    fields_of,
    load_tuned,
    tuned_kernel,
)
from braid.targets.machines.identity import processor_name
from braid.tuning.kernel_tasks import kernel_tasks
from braid.tuning.measured_task import LIBRARY_COST, SLOWER_IN_MODEL
from braid.tuning.model_runs import Program, Turns, TurnsRequest
from braid.tuning.model_verdict import MODEL_KIND, Changed, Verdict, judge
from braid.tuning.synthetic_inputs import synthetic_lengths, synthetic_parameters

_WORKER = "braid.tuning.model_worker"
_MOST_SECONDS = 300.0
"""The seconds of turns after which a model is taken to hang."""
_TRIAL_SECONDS = 20.0
"""Seconds for the first turn of a model whose loops run as often as synthetic inputs say."""


@dataclass(frozen=True)
class Snapshot:
    """The records of kernels from before a search that stayed in some model as a whole.

    Results of an interrupted search, for example, do not count. `confirmed` are the keys of
    schedules that models kept, by the kernels of these models.
    """

    schedules: Mapping[str, TunedKernel]
    rows: Mapping[str, Fields]
    confirmed: Mapping[Kernels, Changed]

    @staticmethod
    def now() -> "Snapshot":
        """Return the records of this user's store as they are now.

        A key counts with what stayed of it: what was found later, by a search that was interrupted
        or that compared nothing, was in no model yet.
        """
        store, known = default_store(), load_tuned()
        schedules: dict[str, TunedKernel] = {}
        rows: dict[str, Fields] = {}
        confirmed: dict[Kernels, set[str]] = {kernels: set() for kernels in Kernels}
        for kernels, key, row in _stayed(store):
            kernel, now = tuned_kernel(row), known.get(key)
            if kernel is None or now is None:
                continue
            if _is_same(kernel, now, kernels):
                confirmed[kernels].add(key)
            if kernels is Kernels.GENERATED and key not in confirmed[kernels]:
                schedules[key], rows[key] = kernel, row
        for key in confirmed[Kernels.GENERATED]:
            schedules[key], rows[key] = known[key], store.read(SCHEDULE_KIND)[key]
        return Snapshot(
            schedules, rows, {kernels: frozenset(keys) for kernels, keys in confirmed.items()}
        )


def _stayed(store: RecordStore) -> Iterator[tuple[Kernels, str, Fields]]:
    """Yield the rows that stayed in models as a whole: by whose kernels, and under which keys.

    Results within the noise do not count: a less busy machine may show a gain.
    """
    for value in store.read(MODEL_KIND).values():
        kernels, verdict = value.get("kernels"), Verdict.of(value)
        if kernels not in list(Kernels) or verdict is None:
            continue
        open_ones = frozenset[str]() if verdict.is_claimed else verdict.kept
        for key, row in _rows(value).items():
            if key not in open_ones:
                yield Kernels(kernels), key, row


def _rows(value: Fields) -> dict[str, Fields]:
    """Return by key the rows that stayed in one model."""
    stayed = value.get("stayed")
    rows = cast("dict[str, object]", stayed) if isinstance(stayed, dict) else {}
    return {key: cast("Fields", row) for key, row in rows.items() if isinstance(row, dict)}


def _is_same(one: TunedKernel, other: TunedKernel, kernels: Kernels) -> bool:
    """Return whether both are made the same with these kernels."""
    if kernels is Kernels.BEST:
        return one.keeps_library == other.keeps_library
    return (one.chosen, one.version) == (other.chosen, other.version)


@dataclass(frozen=True)
class WholeModel:
    """A model whose kernels were searched, which `read` gives, and `jobs` processes compile.

    `decided` gives the module that `select-schedules` sees with some kernels; `keys` are its
    kernels, `own` those that were searched now, and `before` their earlier results.
    """

    context: Context
    read: Callable[[], SourceModel]
    decided: Callable[[Kernels], ModuleOp]
    keys: Changed
    own: Changed
    before: Snapshot
    jobs: int | None = None

    def confirm(self, say: Callable[[str], None]) -> list[Verdict]:
        """Compare, record, and take back: generated kernels first, then a library's.

        Raises BraidError where the store cannot be written.
        """
        generated = self._confirmed(Kernels.GENERATED, say)
        return [*generated, *self._confirmed(Kernels.BEST, say)]

    def runnable(self, kernels: Kernels) -> SourceModel:
        """Return the model with these kernels, and with values for the parameters that it lacks."""
        model = self.read()
        write_settings(model.module, {"kernels": kernels})
        synthetic = synthetic_parameters(model.module, known=model.parameters)
        return replace(model, parameters=chain_parameters(model.parameters, synthetic))

    def _confirmed(self, kernels: Kernels, say: Callable[[str], None]) -> list[Verdict]:
        trial = _Trial.of(self, kernels)
        if not trial.changed:
            return []
        with handle_diagnostics(lambda _: None), collect_remarks(), trial.running() as measure:
            try:
                verdict = judge(trial.changed, measure, trial.counters)
            except (BraidError, WorkerEndedError) as error:
                why = error.message if isinstance(error, BraidError) else str(error)
                say(f"the model as a whole was not compared: {why}")
                return []
        library = "" if kernels is Kernels.GENERATED else "with a library's kernels: "
        say(f"{library}{verdict}")
        for key, own in verdict.slower.items():
            if key in verdict.kept:
                continue
            say(f"  {trial.found[key].what}")
            say(f"    {own.after * 1e6:.4g} µs in the model, {own.before * 1e6:.4g} µs before")
        trial.take_back(verdict.changed - verdict.kept)
        self._record(kernels, verdict)
        return [verdict]

    def _record(self, kernels: Kernels, verdict: Verdict) -> None:
        name = self.read().name
        key = hashlib.sha256(f"{name} {sorted(self.keys)} {kernels}".encode()).hexdigest()
        store, known = default_store(), load_tuned()
        stayed = _rows(store.get(MODEL_KIND, key) or {})
        changed = sorted(verdict.changed & known.keys())  # a store may be emptied meanwhile
        stayed |= {key: _brief(known[key]) for key in changed}
        value = {"what": name, "kernels": str(kernels), "stayed": stayed, **verdict.fields}
        store.append([Record(MODEL_KIND, key, value, processor_name())])


@dataclass(frozen=True)
class _Trial:
    """The results for one kind of kernels: `found` by key, of which `changed` differ from
    before."""

    model: WholeModel
    kernels: Kernels
    found: Mapping[str, TunedKernel]
    costs: Mapping[str, Fields]
    changed: Changed

    @staticmethod
    def of(model: WholeModel, kernels: Kernels) -> "_Trial":
        known = load_tuned()
        asked = model.own | (model.keys - model.before.confirmed[kernels])
        found = {key: known[key] for key in asked if key in known}
        found = {key: kernel for key, kernel in found.items() if kernel.measure == MEASURED}
        is_library = kernels is Kernels.BEST
        changed = (
            key
            for key, kernel in found.items()
            if (kernel.keeps_library if is_library else kernel.chosen != _chosen(model.before, key))
        )
        return _Trial(model, kernels, found, default_store().read(COST), frozenset(changed))

    def taken_back(self, key: str) -> TunedKernel:
        """Return what is recorded of a kernel that is not to be as was found."""
        kernel, before = self.found[key], self.model.before.schedules.get(key)
        if self.kernels is Kernels.BEST:
            return replace(kernel, keeps_library=False)
        if before is not None:
            return replace(before, levels=max(before.levels, kernel.levels))
        refused = {**kernel.refused, str(kernel.chosen): SLOWER_IN_MODEL}
        return replace(kernel, chosen=None, seconds=kernel.baseline, refused=refused)

    def taken_back_costs(self, keys: Changed) -> dict[str, str]:
        """Return by key what is recorded of costs of a library's kernels, by which layouts are
        chosen.
        """
        if self.kernels is not Kernels.BEST:
            return {}
        names = {f"{LIBRARY_COST}{self.found[key].what}" for key in keys}
        found = ((key, value.get("what")) for key, value in self.costs.items())
        return {key: what for key, what in found if isinstance(what, str) and what in names}

    def take_back(self, keys: Changed) -> None:
        """Append what is recorded from now on."""
        for key in sorted(keys):
            append_tuned(key, self.taken_back(key))
        if costs := self.taken_back_costs(keys):
            withdraw_records(costs)

    def counters(self) -> Mapping[str, Sequence[str]]:
        """See `Counters`."""
        decided = self.model.decided(self.kernels)
        return {task.key: task.counters for task in kernel_tasks(decided)}

    @contextmanager
    def running(self) -> Generator[Callable[[Sequence[Changed], int], list[Turns]]]:
        """Measure programs in a separate process, which gets each of them once."""
        lengths, numbers = self._lengths(), dict[Changed, int]()
        with worker_process(_WORKER) as worker:

            def measure(programs: Sequence[Changed], turns: int) -> list[Turns]:
                for kept in programs:
                    if kept not in numbers:
                        numbers[kept] = _asked(worker, self._program(kept, lengths))
                return _asked(
                    worker, TurnsRequest(tuple(map(numbers.__getitem__, programs)), turns)
                )

            yield measure

    def _lengths(self) -> Lengths:
        """Return synthetic lengths of loops with which the model as before ends soon; none if it
        does not.

        A condition that is handed on, or arithmetic on a length, may make a loop endless.
        """
        lengths = synthetic_lengths(self.model.read().module)
        if not lengths:
            return lengths
        with worker_process(_WORKER) as worker:
            try:
                number = _asked(worker, self._program(frozenset(), lengths))
                _asked(worker, TurnsRequest((number,), 1), _TRIAL_SECONDS)
            except (BraidError, WorkerEndedError):
                return {}
        return lengths

    def _program(self, kept: Changed, lengths: Lengths) -> Program:
        """Return the model with these kernels as found, and the others as before."""
        store, back = default_store(), self.changed - kept
        rows = dict(store.read(SCHEDULE_KIND))
        for key in back:
            before = self.model.before.rows.get(key)
            if self.kernels is Kernels.BEST or before is None:
                before = fields_of(self.taken_back(key))
            rows[key] = before
        costs = {key: withdrawn(what) for key, what in self.taken_back_costs(back).items()}
        given = {SCHEDULE_KIND: rows, COST: {**store.read(COST), **costs}}
        with reading(given):
            options = CompileOptions(jobs=self.model.jobs, profile=True)
            read = partial(self.model.runnable, self.kernels)
            lowered = Lowering(self.model.context, read, options).within(None, None)
        machine = lowered.target.host_device.machine
        if (reason := missing_here(machine)) is not None:
            raise BraidError(reason)
        package = package_of(lowered)
        if package.manifest.runs_on or package.manifest.devices:
            raise BraidError("parts of it run on other devices than the host")
        libraries = package.manifest.libraries
        return Program(tuple(package.objects), package.weights, libraries, lengths)


def _brief(kernel: TunedKernel) -> Fields:
    """Return the value of a row that identifies `kernel`, without the parameters of the search."""
    return fields_of(replace(kernel, steps=(), refused={}))


def _asked(
    worker: WorkerProcess, request: Program | TurnsRequest, seconds: float = _MOST_SECONDS
) -> Any:
    """Raise BraidError or WorkerEndedError where there is no answer."""
    answer = worker.ask(request, seconds=seconds)
    if isinstance(answer, str):
        raise BraidError(answer)
    return answer


def _chosen(before: Snapshot, key: str) -> object:
    known = before.schedules.get(key)
    return None if known is None else known.chosen
