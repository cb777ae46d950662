"""What a backend of another package does wrong is told as its own mistake."""

import pytest

from braid.support.errors import BraidError
from braid.targets.backend import Job, Preparation
from braid.targets.backend_calls import checked_backend
from braid.targets.machines.load import load_target

ASK = {
    "families": lambda backend, job: backend.families(job.device, ()),
    "prepare": lambda backend, job: backend.prepare(job),
    "emit": lambda backend, job: backend.emit([], job),
    "needs": lambda backend, job: backend.emit([None], job).needs,
    "link": lambda backend, job: backend.emit([], job).link([]),
    "at": lambda backend, job: backend.emit([], job).at("linalg", []),
    "stages": lambda backend, job: backend.stages,
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


@pytest.mark.parametrize("wrong", [KeyError("x"), None, 7], ids=str)
@pytest.mark.parametrize("method", ASK)
def test_mistakes_name_backend_and_method(method: str, wrong: object) -> None:
    target = load_target("host")
    backend = checked_backend("foreign", Foreign(method, wrong))
    with pytest.raises(BraidError, match=f"backend 'foreign' fails in '{method}': ") as error:
        ASK[method](backend, Job(target, target.host_device))
    assert error.value.hint is not None and ":Foreign'" in error.value.hint


def test_needs_are_those_of_all_kernels() -> None:
    target = load_target("host")
    emitted = checked_backend("foreign", Foreign("", None)).emit(
        [None, None], Job(target, target.host_device)
    )
    with pytest.raises(BraidError, match="there are 0, for 2 kernels"):
        _ = emitted.needs
