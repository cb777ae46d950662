"""What a chip asks of its target."""

from dataclasses import replace

import pytest

from braid.support.errors import BraidError
from braid.targets.backend import Job
from braid.targets.backends import backend
from braid.targets.machines.load import load_target
from braid.targets.machines.target import hosted


def test_a_chip_is_not_the_host() -> None:
    target = load_target("npu-small")
    chip = target.device("npu:0")
    alone = replace(target, devices=hosted([replace(chip, host=None)], chip.name), host=chip.name)
    for ask in (backend("npu").prepare, lambda job: backend("npu").emit([], job)):
        with pytest.raises(BraidError, match=r"'npu:0', a chip that .* is the host of"):
            ask(Job(alone, alone.host_device))
