"""All tests of the CPU's fallback, on the GPU's."""

import pytest

from test.run.fallback.test_casts import *  # noqa: F403
from test.run.fallback.test_decomposed_ops import *  # noqa: F403
from test.run.fallback.test_elementwise import *  # noqa: F403
from test.run.fallback.test_ops import *  # noqa: F403
from test.run.fallback.test_random_groups import *  # noqa: F403
from test.run.fallback.test_top_k_extremes import *  # noqa: F403

del globals()["test_repeated_dims_in_a_chain"]  # which looks at how CPUs share work

pytestmark = pytest.mark.slow
