"""What a backend of another package does wrong is told as its own mistake."""

from contextlib import nullcontext

import pytest

from braid import extend
from braid.support.errors import BraidError
from braid.targets.backend import Job, Preparation
from braid.targets.backend_answers import checked_backend
from braid.targets.machines.load import load_target

ASK = {
    "families": lambda backend, job: backend.families(job.device, ()),
    "prepare": lambda backend, job: backend.prepare(job),
    "emit": lambda backend, job: backend.emit([], job),
    "needs": lambda backend, job: backend.emit([None], job).needs,
    "link": lambda backend, job: backend.emit([], job).link([]),
    "at": lambda backend, job: backend.emit([], job).at("linalg", []),
    "stages": lambda backend, job: backend.stages,
    "meter": lambda backend, job: measured(backend, job, lambda meter: meter.quantity),
}


class Foreign:
    """Answers well, but for one method, which raises or gives `wrong`."""

    def __init__(self, method: str, wrong: object) -> None:
        self.name, self.method, self.wrong = "foreign", method, wrong

    def answer(self, method: str, good: object) -> object:
        if method == self.method and isinstance(self.wrong, Exception):
            raise self.wrong
        return self.wrong if method == self.method else good

    stages = property(lambda self: self.answer("stages", ()))
    needs = property(lambda self: self.answer("needs", ()))

    def families(self, device, installed):
        return self.answer("families", installed)

    def prepare(self, job):
        return self.answer("prepare", Preparation())

    def emit(self, kernels, job):
        return self.answer("emit", self)

    def link(self, functions):
        return self.answer("link", ())

    def at(self, stage, functions):
        return self.answer("at", ())

    def meter(self, job):
        return self.answer("meter", nullcontext(self))

    quantity = property(lambda self: self.answer("quantity", "time"))
    is_exact = property(lambda self: self.answer("is_exact", True))

    def compiled(self, kernels, group):
        return self.answer("compiled", kernels)

    def seconds(self, made):
        return self.answer("seconds", 1.0)

    def results(self, made, operands, results):
        return self.answer("results", results)


MEASURE = {
    "quantity": lambda meter: meter.quantity,
    "is_exact": lambda meter: meter.is_exact,
    "compiled": lambda meter: meter.compiled([None], None),
    "seconds": lambda meter: meter.seconds(None),
    "results": lambda meter: meter.results(None, [], []),
}


def measured(backend, job, ask):
    with backend.meter(job) as meter:
        return ask(meter)


@pytest.mark.parametrize("wrong", [KeyError("x"), "", -1, (3, 4)], ids=str)
@pytest.mark.parametrize("method", MEASURE)
def test_mistakes_of_meters_name_backend_and_method(method: str, wrong: object) -> None:
    target = load_target("host")
    backend = checked_backend("foreign", Foreign(method, wrong))
    job = Job(target, target.host_device)
    if (method, wrong) in (("quantity", ""), ("results", "")):
        return
    with pytest.raises(BraidError, match=f"backend 'foreign' fails in '{method}': "):
        measured(backend, job, MEASURE[method])


def test_meters_of_others_answer() -> None:
    target = load_target("host")
    backend = checked_backend("foreign", Foreign("", None))
    answers = {
        method: measured(backend, Job(target, target.host_device), ask)
        for method, ask in MEASURE.items()
    }
    assert answers == {
        "quantity": "time",
        "is_exact": True,
        "compiled": (None,),
        "seconds": 1.0,
        "results": (),
    }


@pytest.mark.parametrize("wrong", [KeyError("x"), None, 7], ids=str)
@pytest.mark.parametrize("method", ASK)
def test_mistakes_name_backend_and_method(method: str, wrong: object) -> None:
    target = load_target("host")
    backend = checked_backend("foreign", Foreign(method, wrong))
    job = Job(target, target.host_device)
    if (method, wrong) == ("meter", None):
        assert backend.meter(job) is None
        return
    with pytest.raises(BraidError, match=f"backend 'foreign' fails in '{method}': ") as error:
        ASK[method](backend, job)
    assert error.value.hint is not None and ":Foreign'" in error.value.hint


def test_needs_are_those_of_all_kernels() -> None:
    target = load_target("host")
    emitted = checked_backend("foreign", Foreign("", None)).emit(
        [None, None], Job(target, target.host_device)
    )
    with pytest.raises(BraidError, match="there are 0, for 2 kernels"):
        _ = emitted.needs


class Earlier(Foreign):
    """Written for an earlier version, whose names of methods were others."""

    takes_open_sizes = True
    selecting = "select-earlier"
    schedules_by = property(lambda self: "a table")

    def refusal(self, op, known):
        return "everything"

    def machine_here(self, device):
        return "earlier"


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda backend: backend.supports_dynamic_shapes, True),
        (lambda backend: backend.schedule_pass, "select-earlier"),
        (lambda backend: backend.analytic_scheduling, "a table"),
        (lambda backend: backend.unsupported_reason(None, None), "everything"),
        (lambda backend: backend.local_machine(None), "earlier"),
    ],
)
def test_former_names_of_methods_still_answer(ask, answer: object) -> None:
    backend = checked_backend("earlier", Earlier("", None))
    with pytest.warns(DeprecationWarning, match=r"Earlier' defines '.*', which is called '"):
        assert ask(backend) == answer


def test_meters_under_former_names_still_answer() -> None:
    class EarlierMeter:
        what = "earlier time"
        is_exact = True

        def made(self, kernels, group):
            return kernels

        def seconds(self, made):
            return 1.0

        def results(self, made, operands, results):
            return results

    target = load_target("host")
    backend = checked_backend("earlier", Foreign("meter", nullcontext(EarlierMeter())))
    with backend.meter(Job(target, target.host_device)) as meter:
        with pytest.warns(DeprecationWarning, match="'what', which is called 'quantity' now"):
            assert meter.quantity == "earlier time"
        with pytest.warns(DeprecationWarning, match="'made', which is called 'compiled' now"):
            assert meter.compiled([None], None) == (None,)


def test_former_names_are_still_importable() -> None:
    assert extend.StandingGroup is extend.BackendGroup
    assert extend.Unmeasured is extend.Measuring is extend.Grouping is extend.Backend
