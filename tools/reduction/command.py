"""Check whether a command fails on a file as it failed on the whole model."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from braid.support.errors import BraidError
from braid.support.input_files import reason

PLACE = "{}"
"""Stands for the file in a command; without it, the file is the last argument."""


@dataclass(frozen=True)
class Failure:
    """The status of a command, and the output to both streams; None: it ran too long."""

    status: int | None
    output: str


@dataclass(frozen=True)
class Command:
    """A command line that takes a model; `timeout` is in seconds."""

    text: str
    timeout: float

    def run(self, file: Path) -> Failure:
        """Run the command on `file`.

        Raises:
            BraidError: there is no such program, or the text is not a command line.

        """
        try:
            words = shlex.split(self.text)
            words = [word.replace(PLACE, str(file)) for word in words]
            if PLACE not in self.text:
                words.append(str(file))
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", timeout=self.timeout
            )
        except subprocess.TimeoutExpired:
            return Failure(None, "")
        except (OSError, ValueError) as error:
            raise BraidError(f"cannot run '{self.text}': {reason(error)}") from error
        return Failure(done.returncode, done.stdout + done.stderr)


@dataclass(frozen=True)
class Symptom:
    """The symptom two equal failures share: the status and, if given, a pattern in the output."""

    status: int | None
    pattern: str | None

    def shows_in(self, failure: Failure) -> bool:
        """Return whether `failure` is the one that is looked for."""
        if failure.status != self.status:
            return False
        return self.pattern is None or re.search(self.pattern, failure.output) is not None


def symptom_of(command: Command, file: Path, pattern: str | None) -> Symptom:
    """Return the failure on the whole model.

    Raises:
        BraidError: nothing does, or the output does not match `pattern`.

    """
    failure = command.run(file)
    symptom = Symptom(failure.status, pattern)
    if pattern is None and failure.status == 0:
        raise BraidError(
            f"'{command.text}' succeeds on '{file}': there is nothing to reduce",
            hint="give a command that fails, or --match with a pattern of what it prints",
        )
    try:
        if symptom.shows_in(failure):
            return symptom
    except re.error as error:
        raise BraidError(
            f"--match is '{pattern}', which is not a regular expression: {error}"
        ) from error
    raise BraidError(
        f"what '{command.text}' prints on '{file}' does not match '{pattern}'",
        hint="it ended with status "
        f"{failure.status} and printed:\n{failure.output.strip()[-2000:]}",
    )
