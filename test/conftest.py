"""What holds for all tests that pytest runs."""

import os
from pathlib import Path

from hypothesis import settings

from braid.passes.infrastructure.decision_checks import VARIABLE

# Nothing that was measured on this machine before decides in a test.
os.environ["BRAID_CACHE_DIR"] = str(Path(__file__).parents[1] / "build" / "test" / "cache")
os.environ.pop("BRAID_RECORDS", None)
# What passes claim of their decisions is checked, in child processes too.
os.environ.setdefault(VARIABLE, "1")

# A busy machine is not a failure.
settings.register_profile("braid", deadline=None)
settings.load_profile("braid")
